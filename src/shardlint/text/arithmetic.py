"""Whole-number arithmetic as in `$(( ... ))`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from shardlint.findings import Unknown

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9A-Fa-f]+|\d+)|([A-Za-z_]\w*)|(\*\*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%()<>?:&|^~!]))", re.ASCII
)
_LEVELS: Final = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_MAX_DEPTH: Final = 50
_BITS: Final = 63


class _NoNumber(Exception):
    """The way out of the recursion; never leaves this file."""


def calculate(text: str, lookup: Callable[[str], str | Unknown]) -> int | str:
    """The result, or why there is none. `lookup` gives the text of a variable that stands without a `$`."""
    tokens = _tokens(text)
    if tokens is None:
        return f"$(({text})) is not understood"
    try:
        reader = _Reader(tokens, lookup)
        result = reader.expression(0, 0)
        return result if reader.at == len(tokens) else f"$(({text})) is not understood"
    except _NoNumber as reason:
        return str(reason)


def _tokens(text: str) -> list[str] | None:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        tokens.append(match.group().strip())
        at = match.end()
    return tokens


class _Reader:
    """Precedence climbing over the tokens; `**` and assignments are left to the shell."""

    def __init__(self, tokens: list[str], lookup: Callable[[str], str | Unknown]) -> None:
        self.tokens = tokens
        self.at = 0
        self._lookup = lookup

    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def expression(self, level: int, depth: int) -> int:
        if depth > _MAX_DEPTH:
            raise _NoNumber("the arithmetic is nested too deeply")
        left = self._operand(depth)
        while _LEVELS.get(self._next(), -1) > level:
            operator = self._next()
            self.at += 1
            right = self.expression(_LEVELS[operator], depth + 1)
            left = _apply(operator, left, right)
        if level == 0 and self._next() == "?":
            return self._choice(left, depth)
        return left

    def _choice(self, condition: int, depth: int) -> int:
        self.at += 1
        yes = self.expression(0, depth + 1)
        if self._next() != ":":
            raise _NoNumber("the arithmetic is not understood")
        self.at += 1
        no = self.expression(0, depth + 1)
        return yes if condition else no

    def _operand(self, depth: int) -> int:
        token = self._next()
        self.at += 1
        if token in ("-", "+", "!", "~"):
            value = self.expression(10, depth + 1)
            return {"-": -value, "+": value, "!": int(not value), "~": ~value}[token]
        if token == "(":
            value = self.expression(0, depth + 1)
            if self._next() != ")":
                raise _NoNumber("the arithmetic is not understood")
            self.at += 1
            return value
        if token[:1].isdigit():
            return _number(token)
        if token[:1].isalpha() or token[:1] == "_":
            return self._variable(token)
        raise _NoNumber("the arithmetic is not understood")

    def _variable(self, name: str) -> int:
        text = self._lookup(name)
        if isinstance(text, Unknown):
            raise _NoNumber(text.reason)
        if not re.fullmatch(r"\s*-?\d{1,18}\s*", text, re.ASCII):
            raise _NoNumber(f"${name} is not a number")
        return int(text)


def _number(token: str) -> int:
    if len(token) > 18:
        raise _NoNumber("the number is too large")
    if token[:2] in ("0x", "0X"):
        return int(token, 16)
    if token[0] == "0" and token.strip("01234567"):
        raise _NoNumber(f"{token} is no octal number")
    return int(token, 8 if token[0] == "0" else 10)


def _apply(operator: str, left: int, right: int) -> int:
    if operator in ("/", "%"):
        if right == 0:
            raise _NoNumber("the arithmetic divides by 0")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)  # bash rounds towards 0
        return quotient if operator == "/" else left - right * quotient
    if operator in ("<<", ">>") and not 0 <= right < _BITS:
        raise _NoNumber("the arithmetic shifts too far")
    result = _OPERATIONS[operator](left, right)
    if abs(result) >> _BITS:
        raise _NoNumber("the arithmetic overflows")
    return result


_OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "||": lambda left, right: int(bool(left or right)),
    "&&": lambda left, right: int(bool(left and right)),
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "&": lambda left, right: left & right,
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    ">": lambda left, right: int(left > right),
    "<=": lambda left, right: int(left <= right),
    ">=": lambda left, right: int(left >= right),
    "<<": lambda left, right: left << right,
    ">>": lambda left, right: left >> right,
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
}
