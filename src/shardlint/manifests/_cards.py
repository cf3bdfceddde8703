"""Which card a pod will run on, as its selectors name it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence

_CARD = re.compile(
    r"""(?: ^ | [./_-] ) (?:
        gpu [._-]? (?: product (?:[.-]name)? | name | model | type | class | accelerator )
        | gke (?: -tpu )? -accelerator
        | accelerator (?: [._-]? (?: name | type | model ) )?
        | npu [._-]? (?: name | type )
    ) $ | ^gpu\.nvidia\.com/(?: class | model )$ | ^gpu\.intel\.com/product$ | ^(?: gpu | card )$
    """,
    re.VERBOSE,
)
"""Label keys whose value names a card."""
_MACHINE = re.compile(r"(?:^|[./-])instance-type$|^crusoe\.ai/instance\.class$|(?:^|/)machine-type$")
"""Label keys whose value names a machine."""
_CLASS = re.compile(r"(?:^|/)compute-class$")
"""Label keys whose value may name either."""
_NO_NAME = re.compile(r"(?i)true|false|yes|no|present|enabled|nvidia|amd|intel|gpu|cuda|rocm|\d*")
_PLACEHOLDER = re.compile(r"(?i)\breplaced?\b|\byour\b|<.*>|__.+__|\bchange-?me\b|\bplaceholder\b|\btodo\b")
_ONE_OF = "several values are allowed"


def named(spec: Node) -> Maybe[str] | None:
    """The card, else the machine, that a pod spec selects; None where no selector names one."""
    labels = [*_selector(spec), *_affinity(spec)]
    for keys in (_CARD, _MACHINE, _CLASS):
        for key, value in labels:
            if keys.search(key) and not _says_nothing(value):
                return _unless_placeholder(value)
    return None


def _says_nothing(value: Maybe[str]) -> bool:
    return isinstance(value, Located) and bool(_NO_NAME.fullmatch(value.value.strip()))


def _unless_placeholder(value: Maybe[str]) -> Maybe[str]:
    if isinstance(value, Located) and _PLACEHOLDER.search(value.value):
        return Unknown(f"{value.value} is a placeholder", value.span, value.spelled)
    return value


def _selector(spec: Node) -> Iterator[tuple[str, Maybe[str]]]:
    selector = spec.get("nodeSelector")
    for key, value in selector.items() if isinstance(selector, Mapping) else ():
        if isinstance(value, Scalar) and not value.is_null:
            yield key.text, value_of(value)


def _affinity(spec: Node) -> Iterator[tuple[str, Maybe[str]]]:
    required = spec.get("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = required.get("nodeSelectorTerms") if required else None
    if not isinstance(terms, Sequence):
        return
    for term in terms:
        expressions = term.get("matchExpressions")
        for expression in expressions if isinstance(expressions, Sequence) else ():
            if (pair := _expression(expression, alternatives=len(terms) > 1)) is not None:
                yield pair


def _expression(expression: Node, *, alternatives: bool) -> tuple[str, Maybe[str]] | None:
    """`{key, operator: In, values: [one]}` -> key and value; more than one value cannot be told."""
    key, operator, values = (expression.get(name) for name in ("key", "operator", "values"))
    if not isinstance(key, Scalar) or not isinstance(operator, Scalar) or operator.text != "In":
        return None
    if not isinstance(values, Sequence) or not len(values):
        return None
    only = values[0]
    if len(values) > 1 or alternatives:
        return key.text, Unknown(_ONE_OF, values.span, values.spelled, settle_by="--hardware")
    return (key.text, value_of(only)) if isinstance(only, Scalar) else None
