"""Which card a pod will run on, as its selectors name it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence

_CARD_ENDINGS = (
    "gpuproduct", "gpuproductname", "gpuname", "gpumodel", "gputype", "gpuclass", "gpuaccelerator", "accelerator",
    "acceleratorname", "acceleratortype", "acceleratormodel", "nputype", "npuname",
)  # fmt: skip
"""What label keys whose value names a card end with, without their dots and dashes."""
_CARD_KEYS = frozenset(("gpu.nvidia.com/class", "gpu.nvidia.com/model", "gpu.intel.com/product", "gpu", "card"))
_MACHINE_ENDINGS = ("instancetype", "instanceclass", "machinetype")
_CLASS_ENDINGS = ("computeclass",)
"""Such a class may be named after a card or a machine."""
_NO_NAME = Pattern(r"(?i)true|false|yes|no|present|enabled|nvidia|amd|intel|gpu|cuda|rocm|\d*")
_PLACEHOLDER = Pattern(r"(?i)\breplaced?\b|\byour\b|<.*>|__.+__|\bchange-?me\b|\bplaceholder\b|\btodo\b")
_PRODUCT = Pattern(r"(?:NVIDIA|AMD|Tesla)-\S")
"""How the operators of the vendors spell a product, which people then give to taints as well."""
_ONE_OF = "several values are allowed"


def named(spec: Node) -> Maybe[str] | None:
    """The card, else the machine, that a pod spec selects, or whose taint it tolerates; None where none is named."""
    return (
        of_labels([*_selector(spec), *_affinity(spec)])
        or next(
            (_templated(node) for name in ("nodeSelector", "affinity") if (node := spec.get(name)) and node.templated),
            None,
        )
        or _tolerated(spec)
    )


def of_labels(labels: Iterable[tuple[str, Maybe[str]]]) -> Maybe[str] | None:
    """The same for labels that a node must have."""
    labels = list(labels)
    for endings in (_CARD_ENDINGS, _MACHINE_ENDINGS, _CLASS_ENDINGS):
        for key, value in labels:
            if _is_key(key, endings) and not _says_nothing(value):
                return _unless_placeholder(value)
    return None


def _is_key(key: str, endings: tuple[str, ...]) -> bool:
    plain = key.lower().replace("-", "").replace("_", "").replace(".", "")
    return plain.endswith(endings) or (endings is _CARD_ENDINGS and key in _CARD_KEYS)


def _templated(node: Node) -> Unknown:
    return Unknown("templated", node.span, node.spelled, settle_by="render the template first")


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
    return of_terms(required.get("nodeSelectorTerms") if required else None)


def of_terms(terms: Node | None) -> Iterator[tuple[str, Maybe[str]]]:
    """The labels that `nodeSelectorTerms` ask for; of alternatives none can be told."""
    for term in terms if isinstance(terms, Sequence) else ():
        expressions = term.get("matchExpressions")
        for expression in expressions if isinstance(expressions, Sequence) else ():
            if (
                pair := _expression(expression, alternatives=isinstance(terms, Sequence) and len(terms) > 1)
            ) is not None:
                yield pair


def _tolerated(spec: Node) -> Maybe[str] | None:
    """The product in the taint of nodes (`nvidia.com/gpu=NVIDIA-L40S:NoSchedule`) that the pod alone tolerates."""
    tolerations = spec.get("tolerations")
    products = [
        value_of(value)
        for toleration in (tolerations if isinstance(tolerations, Sequence) else ())
        if isinstance(value := toleration.get("value"), Scalar) and _PRODUCT.match(value.text)
    ]
    return products[0] if len(products) == 1 else None


def _expression(expression: Node, *, alternatives: bool) -> tuple[str, Maybe[str]] | None:
    """`{key, operator: In, values: [...]}` -> key and value, of several `A|B`."""
    key, operator, values = (expression.get(name) for name in ("key", "operator", "values"))
    if not isinstance(key, Scalar) or not isinstance(operator, Scalar) or operator.text != "In":
        return None
    value = one_of(values, alternatives=alternatives)
    return None if value is None else (key.text, value)


def one_of(values: Node | None, *, alternatives: bool = False) -> Maybe[str] | None:
    """The value of a list, of several `A|B`; Unknown where other lists may hold instead of it."""
    found = [value_of(value) for value in values if isinstance(value, Scalar)] if isinstance(values, Sequence) else []
    if values is None or not found:
        return None
    known = [value for value in found if isinstance(value, Located)]
    if alternatives or len(known) < len(found):
        return found[0] if len(found) == 1 and not alternatives else _several(values)
    return (
        known[0] if len(known) == 1 else Located("|".join(value.value for value in known), values.span, values.spelled)
    )


def _several(values: Node) -> Unknown:
    return Unknown(_ONE_OF, values.span, values.spelled, settle_by="--hardware")
