"""Values of Kubernetes objects as text: `$(NAME)` replaced, placeholders that a later step fills in told apart."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.manifests._splices import Splice, word_of
from shardlint.text.nodes import Node, Scalar, Sequence
from shardlint.text.source import MASK, Fragment, Stretches

NO_ENV: Mapping[str, Maybe[str]] = MappingProxyType({})
_REFERENCE = Pattern(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
_PLACEHOLDER = Pattern(r"\$\{\w+\}|\$[A-Z_][A-Z0-9_]*\b")
"""What envsubst and OpenShift templates fill in; Kubernetes itself knows only `$(NAME)`."""
_LONE_FLAG = Pattern(rf"(?<!\S)--[\w.-]+(?:=[^\s{MASK}]+)?(?=\s|\Z)(?=[ \t\\]*(?:\n|\Z|--?[A-Za-z]))")
"""A flag with its value in one word, or one behind which no value stands."""
_RENDER = "render the template first"
_ESCAPED_DOLLAR = "${DOLLAR}"
"""How templates for envsubst write a dollar sign that is to stay (`DOLLAR='$'`)."""
_UNSET = Pattern(r"\$\([A-Za-z_][\w.-]*\)")
"""A reference that was not replaced: its variable comes from another file, or was forgotten."""


def value_of(scalar: Scalar, env: Mapping[str, Maybe[str]] = NO_ENV) -> Maybe[str]:
    """The value that the API server sees, `$(NAME)` replaced from `env`."""
    located = scalar.located()
    if isinstance(located, Unknown) or "$" not in located.value:
        return located
    return word(fragment_of(scalar, env))


def word(fragment: Fragment) -> Maybe[str]:
    """A fragment as one word; Unknown where it holds a placeholder or a reference to nothing."""
    found = word_of(fragment)
    if isinstance(found, Unknown) or "$" not in found.value:
        return found
    if (placeholder := _PLACEHOLDER.search(found.value)) is not None:
        reason = f"{placeholder.group()} is a placeholder, filled in before the file is applied"
        return Unknown(reason, found.span, found.spelled)
    if (unset := _UNSET.search(found.value)) is not None:
        return Unknown(f"{unset.group()} is not set in this file", found.span, found.spelled)
    return found


def fragments(node: Node | None, env: Mapping[str, Maybe[str]]) -> list[Fragment]:
    """The words of `command` or `args`; a lone string, which Kubernetes would refuse, is split as it is meant."""
    if isinstance(node, Scalar) and not node.is_null:
        from shardlint.manifests._interpolation import split

        return split(fragment_of(node, env))
    entries = node if isinstance(node, Sequence) else (node,)
    words = [entry for entry in entries if isinstance(entry, Scalar) and not entry.is_null]
    if node is not None and node.templated:
        return list(_of_template(words, env))
    return [fragment_of(entry, env) for entry in words]


def _of_template(words: list[Scalar], env: Mapping[str, Maybe[str]]) -> Iterator[Fragment]:
    """The words of a list that a template makes: those in a branch or loop are unknown.

    A flag there whose value follows in the same way stays as it is: it is the value that is not known.
    """
    fragments = [fragment_of(entry, env) for entry in words]
    optional = [entry.templated for entry in words]
    for place, fragment in enumerate(fragments):
        follows = place + 1 < len(words) and optional[place + 1] and not fragments[place + 1].text.startswith("-")
        is_flag = fragment.text.startswith("-") and "=" not in fragment.text
        if not optional[place] or not fragment.text or MASK in fragment.text or (is_flag and follows):
            yield fragment
        else:
            span = fragment.span(0, len(fragment.text))
            why = Unknown("it stands in a branch of the template", span, settle_by=_RENDER)
            yield fragment._replace(text=MASK * len(fragment.text), holes={0: why})


def fragment_of(scalar: Scalar, env: Mapping[str, Maybe[str]]) -> Fragment:
    """The scalar's text with `$(NAME)` replaced where `env` has the name; other names stay, as in Kubernetes."""
    fragment = scalar.fragment()
    if MASK in fragment.text and (optional := scalar.optional_parts):
        fragment = _with_optional_flags(fragment, optional)
    if "$" not in fragment.text:
        return fragment
    if _ESCAPED_DOLLAR in fragment.text:
        fragment = _with_dollars(fragment)
    whole = _REFERENCE.fullmatch(fragment.text)
    if whole is not None and (value := _where_written(env.get(whole.group(1) or ""), fragment)) is not None:
        return value
    out = Splice(fragment)
    at = 0
    for reference in _REFERENCE.finditer(fragment.text):
        out.extend(fragment.part(at, reference.start()))
        at = reference.end()
        _refer(fragment, reference, env, out)
    out.extend(fragment.part(at, len(fragment.text)))
    return out.fragment()


def _with_optional_flags(fragment: Fragment, optional: Stretches) -> Fragment:
    """The text with the flags masked that a branch of the template adds to a command: they may not be there.

    A flag with a value of its own behind it stays, because its value is a template's mostly, and unknown as well; and
    so does what is more than flags.
    """
    text, holes = fragment.text, dict(fragment.holes)
    for first, last in optional:
        start, end = (bisect_left(fragment.offsets, place, hi=len(text)) for place in (first, last))
        if not text[start:end].lstrip(" \t\r\n\\").startswith("-"):
            continue
        for flag in _LONE_FLAG.finditer(text, start, end):
            span, length = fragment.span(*flag.span()), len(flag.group())
            holes[flag.start()] = Unknown("it stands in a branch of the template", span, flag.group(), _RENDER)
            text = text[: flag.start()] + MASK * length + text[flag.end() :]
    return fragment._replace(text=text, holes=holes)


def _with_dollars(fragment: Fragment) -> Fragment:
    out = Splice(fragment)
    at = 0
    while (found := fragment.text.find(_ESCAPED_DOLLAR, at)) >= 0:
        out.extend(fragment.part(at, found))
        out.replace(fragment, found, found + len(_ESCAPED_DOLLAR), "$")
        at = found + len(_ESCAPED_DOLLAR)
    out.extend(fragment.part(at, len(fragment.text)))
    return out.fragment()


def _where_written(value: Maybe[str] | None, fragment: Fragment) -> Fragment | None:
    """A variable's value at the place where it is written, which is what would have to change; None if it is not."""
    source = fragment.source
    if not isinstance(value, Located) or not value.value or value.span is None or value.span.path != source.path:
        return None
    first = source.offset(value.span.line, value.span.column)
    last = source.offset(value.span.end_line, value.span.end_column)
    start = source.text.find(value.value, first, last)
    return Fragment(value.value, source, range(start, start + len(value.value) + 1)) if start >= 0 else None


def _refer(fragment: Fragment, reference: re.Match[str], env: Mapping[str, Maybe[str]], out: Splice) -> None:
    start, end = reference.span()
    value = env.get(reference.group(1) or "")
    if isinstance(value, Located):
        out.replace(fragment, start, end, value.value)
    elif isinstance(value, Unknown):
        out.hole(fragment, start, end, Unknown(value.reason, fragment.span(start, end), reference.group()))
    else:
        out.extend(fragment.part(start + (reference.group() == "$$"), end))
