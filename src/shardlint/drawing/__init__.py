"""A layout as a picture and in numbers.

What stands where (`scene`) is drawn for a terminal (`terminal`) or as SVG (`svg`); the numbers (`figures`, `bars`)
stand under it, and `page` has all of it as one HTML file.
"""
