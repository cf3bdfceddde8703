"""Quantisation methods that vLLM once had, by release."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.engines.versions import Version

REMOVED_SINCE: Mapping[str, str] = {
    "aqlm": "0.10.2",
    "bitblas": "0.16.0",
    "bitsandbytes": "0.28.0",
    "deepspeedfp": "0.15.1",
    "gguf": "0.24.0",
    "hqq": "0.15.1",
    "ipex": "0.16.0",
    "petit_nvfp4": "0.20.2",
    "ptpc_fp8": "0.19.1",
    "qqq": "0.10.2",
    "rtn": "0.15.1",
    "tpu_int8": "0.14.1",
}
"""Method -> the first release that was looked at and does not have it."""

DEPRECATED: Mapping[str, str] = {"fbgemm_fp8": "0.33.0", "fp_quant": "0.33.0"}
"""Method -> the release that refuses it unless it is allowed by a flag; earlier ones were not looked at."""


def is_removed(method: str, version: Version) -> bool:
    """Whether this release no longer has the method."""
    return method in REMOVED_SINCE and version >= Version.of(REMOVED_SINCE[method])


def is_deprecated(method: str, version: Version) -> bool:
    """Whether this release wants a flag for the method."""
    return method in DEPRECATED and version >= Version.of(DEPRECATED[method])
