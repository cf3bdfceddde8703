"""Accelerators that a Kubernetes container asks for by resource name, vendor by vendor."""

from __future__ import annotations

import re

from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import _devices
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar

_COUNTED = re.compile(
    r"""
    nvidia\.com/(?: gpu | gpu\.shared | pgpu | mig-[\w.]+ | (?:gpu-)?[a-z]{0,3}\d+[\w-]* )
    | amd\.com/gpu
    | (?:gpu\.)?intel\.com/(?: gpu | i915 | xe )
    | habana\.ai/gaudi
    | google\.com/tpu
    | aws\.amazon\.com/neuron(?: core | device )?
    | huawei\.com/Ascend\w+
    | volcano\.sh/vgpu-number
    | aliyun\.com/gpu-count
    | (?: deviceclass\.resource\.kubernetes\.io/ ) [\w.-]+
    | rebellions\.ai/ATOM | tenstorrent\.com/[\w-]+ | furiosa\.ai/[\w-]+ | enflame\.com/gcu
    | kunlunxin\.com/vxpu | cambricon\.com/(?:vmlu|mlu) | hygon\.com/dcu\w* | iluvatar\.ai/[\w-]*gpu
    | metax-tech\.com/[sv]?gpu | mthreads\.com/v?gpu | birentech\.com/gpu
    """,
    re.VERBOSE,
)
"""Resource names whose unit is one device."""
_SHARES = re.compile(r"koordinator\.sh/gpu(-core)?|tencent\.com/vcuda-core|aliyun\.com/gpu-mem|volcano\.sh/gpu-memory")
"""Resource names that count percent or memory of a card."""


def requested(container: Node) -> Maybe[int] | None:
    """Devices in `resources` of a container: limits win over requests, several names add up; None: no such name."""
    for part in ("limits", "requests"):
        amounts = container.get("resources", part)
        if isinstance(amounts, Mapping) and (found := _devices_in(amounts)):
            return _devices.added(found)
    return None


def slice_name(container: Node) -> Located[str] | None:
    """The resource name where it names the kind of device as well (`nvidia.com/mig-3g.40gb`, `habana.ai/gaudi`)."""
    for part in ("limits", "requests"):
        amounts = container.get("resources", part)
        for key, _ in amounts.items() if isinstance(amounts, Mapping) else ():
            if _COUNTED.fullmatch(key.text.strip()) and not key.text.strip().endswith(("/gpu", "/gpu.shared", "/pgpu")):
                return Located(key.text.strip(), key.span, key.spelled)
    return None


def _devices_in(amounts: Mapping) -> list[Maybe[int]]:
    found: list[Maybe[int]] = []
    for key, amount in amounts.items():
        name = key.text.strip()
        if not isinstance(amount, Scalar) or amount.is_null:
            continue
        if _COUNTED.fullmatch(name):
            found.append(_devices.count(value_of(amount)))
        elif _SHARES.fullmatch(name):
            found.append(Unknown(f"{name} counts shares of a card", key.span, key.spelled))
    return found
