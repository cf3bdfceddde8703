"""The parts that families of models are put together from: each takes a model's numbers and gives rows."""
