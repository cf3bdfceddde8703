"""Values of Kubernetes objects as text: `$(NAME)` replaced, placeholders that a later step fills in told apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._splices import Splice, word_of
from shardlint.text.nodes import Node, Scalar, Sequence
from shardlint.text.source import Fragment

NO_ENV: Mapping[str, Maybe[str]] = MappingProxyType({})
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
_PLACEHOLDER = re.compile(r"\$\{\w+\}|\$[A-Z_][A-Z0-9_]*\b")
"""What envsubst and OpenShift templates fill in; Kubernetes itself knows only `$(NAME)`."""
_ESCAPED_DOLLAR = "${DOLLAR}"
"""How templates for envsubst write a dollar sign that is to stay (`DOLLAR='$'`)."""
_UNSET = re.compile(r"\$\([A-Za-z_][\w.-]*\)")
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
    return [fragment_of(entry, env) for entry in entries if isinstance(entry, Scalar) and not entry.is_null]


def fragment_of(scalar: Scalar, env: Mapping[str, Maybe[str]]) -> Fragment:
    """The scalar's text with `$(NAME)` replaced where `env` has the name; other names stay, as in Kubernetes."""
    fragment = scalar.fragment()
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
