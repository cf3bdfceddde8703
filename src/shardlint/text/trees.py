"""Parsing with tree-sitter's grammars, whose trees survive errors and know where each part stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Grammar = Literal["bash", "hcl", "nix"]

_FOREIGN: Final = re.compile(r"[^\x00-\x7f]")


def parse(text: str, grammar: Grammar) -> Node:
    """The root of a text's tree; places count its characters."""
    return _parser(grammar).parse(shadow(text)).root_node


def shadow(text: str) -> bytes:
    """What a grammar is shown: one byte a character, so that its offsets are those of the text.

    The scanners look characters up in a table of C's `isalpha` by their number, beyond the table's end for large ones,
    and crash the process; to the structure of a text every character outside ASCII is a letter anyway.
    """
    return _FOREIGN.sub("_", text).encode("ascii")


@cache
def _parser(grammar: Grammar) -> Parser:
    import tree_sitter

    if grammar == "bash":
        from tree_sitter_bash import language
    elif grammar == "hcl":
        from tree_sitter_hcl import language
    else:
        from tree_sitter_nix import language
    return tree_sitter.Parser(tree_sitter.Language(language()))


def named(node: Node) -> Iterator[Node]:
    """The children that are no punctuation and no comment."""
    return (child for child in node.children if child.is_named and child.type != "comment")
