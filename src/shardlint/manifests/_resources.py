"""Accelerators that a Kubernetes container asks for by resource name, vendor by vendor."""

from __future__ import annotations

from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.manifests import _devices
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar

_PLAIN = frozenset(
    (
        "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/pgpu", "amd.com/gpu", "gpu.intel.com/i915",
        "gpu.intel.com/xe", "intel.com/gpu", "google.com/tpu", "volcano.sh/vgpu-number", "aliyun.com/gpu-count",
        "cambricon.com/mlu", "cambricon.com/vmlu", "enflame.com/gcu", "kunlunxin.com/vxpu", "mthreads.com/vgpu",
        "metax-tech.com/gpu", "metax-tech.com/sgpu", "birentech.com/gpu",
    )
)  # fmt: skip
"""Resource names whose unit is one device, of which they do not say the kind."""
_KINDS = frozenset(
    (
        "habana.ai/gaudi",
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "aws.amazon.com/neurondevice",
        "rebellions.ai/ATOM",
    )
)
_KIND_PREFIXES = (
    "nvidia.com/mig-", "aws.amazon.com/neuron", "huawei.com/Ascend", "huawei.com/ascend", "tenstorrent.com/",
    "furiosa.ai/", "hygon.com/dcu", "iluvatar.ai/", "deviceclass.resource.kubernetes.io/",
)  # fmt: skip
"""Resource names whose unit is one device, and which say of what kind."""
_RENAMED = Pattern(r"nvidia\.com/(?:gpu-)?[a-z]{0,3}\d+[\w-]*")
"""Names that a cluster gives to its own cards in the device plugin (`nvidia.com/h100`)."""
_SHARES = frozenset(
    (
        "koordinator.sh/gpu",
        "koordinator.sh/gpu-core",
        "tencent.com/vcuda-core",
        "aliyun.com/gpu-mem",
        "volcano.sh/gpu-memory",
    )
)
"""Resource names that count percent or memory of a card."""


def requested(container: Node) -> Maybe[int] | None:
    """Devices in `resources` of a container: limits win over requests, several names add up; None: no such name."""
    resources = container.get("resources")
    if resources is not None and (count := counted(resources)) is not None:
        return count
    if resources is not None and resources.templated:
        return Unknown("templated", resources.span, resources.spelled, settle_by="render the template first")
    return None


def counted(resources: Node) -> Maybe[int] | None:
    """Devices in `limits`, else in `requests`."""
    for part in ("limits", "requests"):
        amounts = resources.get(part)
        if isinstance(amounts, Mapping) and (found := counted_in(amounts)) is not None:
            return found
    return None


def counted_in(amounts: Mapping) -> Maybe[int] | None:
    """Devices in one of the two; None where it names none."""
    return _devices.added(_devices_in(amounts))


def device_name(container: Node) -> Located[str] | None:
    """The resource name where it names the kind of device as well (`nvidia.com/mig-3g.40gb`, `habana.ai/gaudi`)."""
    for part in ("limits", "requests"):
        amounts = container.get("resources", part)
        for key, _ in amounts.items() if isinstance(amounts, Mapping) else ():
            if names_kind(key.text.strip()):
                return Located(key.text.strip(), key.span, key.spelled)
    return None


def names_kind(name: str) -> bool:
    """Whether a resource name says of what kind its devices are."""
    renamed = name.startswith("nvidia.com/") and _RENAMED.fullmatch(name)
    return name in _KINDS or name.startswith(_KIND_PREFIXES) or bool(renamed)


def _devices_in(amounts: Mapping) -> list[Maybe[int]]:
    found: list[Maybe[int]] = []
    for key, amount in amounts.items():
        name = key.text.strip()
        if not isinstance(amount, Scalar) or amount.is_null:
            continue
        if name in _PLAIN or names_kind(name):
            found.append(_devices.count(value_of(amount)))
        elif name in _SHARES:
            found.append(Unknown(f"{name} counts shares of a card", key.span, key.spelled))
    return found
