"""Scripts that are not at hand and named after the engine that they start (`/srv/vllm/vllm-server.sh`)."""

from __future__ import annotations

import re

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.manifests import _stated

_ENGINES = {"vllm": _stated.VLLM, "sglang": _stated.SGLANG}
_SCRIPT = Pattern(
    r"(?:.*/)?[\w.-]*(vllm|sglang)[\w.-]*\.(?:sh|bash)"
    r"|(?:.*/)?(vllm|sglang)/(?:[\w.-]+/)?(?:start|run|serve|launch|entrypoint)[\w-]*\.(?:sh|bash)",
    re.IGNORECASE,
)
_OTHER_PURPOSE = Pattern(r"(?i)bench|proxy|router|gateway|health|check|stop|test|client|install|setup|build|watch")


def named(launch: Launch) -> Launch:
    """The launch with the engine that its script is named after; nothing of what the script tells it is known."""
    script = next((word for word in launch.argv if isinstance(word, Located) and _SCRIPT.fullmatch(word.value)), None)
    if script is None or script not in launch.argv[:2] or _OTHER_PURPOSE.search(script.value.rpartition("/")[2]):
        return launch
    match = _SCRIPT.fullmatch(script.value)
    assert match is not None
    engine = _ENGINES[(match[1] or match[2]).lower()]
    why = f"what {script.value} starts is not in this file"
    inside = Unknown(why, script.span, script.spelled, settle_by="checking that script")
    return launch._replace(argv=(*_stated.command(engine, launch.at), inside))


_IMAGE = Pattern(r"(?i)(?<![a-z])(vllm|sglang|trt-?llm|tensorrt-?llm)(?![a-z])")
_OTHER_IMAGE = Pattern(r"(?i)router|sidecar|bench|perf|proxy|gateway|frontend|operator|exporter|client|webui")
_BY_IMAGE = {"vllm": _stated.VLLM, "sglang": _stated.SGLANG}
_TRTLLM = ("trtllm-serve",)
_VARIABLES = (
    (Pattern(r"(?:VLLM_|LLM_|HF_)?MODEL(?:_(?:ID|NAME|PATH|REPO))?1?"), "model"),
    (Pattern(r"(?:VLLM_)?(?:TP|TP_SIZE|TENSOR_PARALLEL(?:_SIZE|ISM)?)1?"), "tensor-parallel-size"),
    (Pattern(r"(?:VLLM_)?(?:PP|PP_SIZE|PIPELINE_PARALLEL(?:_SIZE|ISM)?)1?"), "pipeline-parallel-size"),
    (Pattern(r"(?:VLLM_)?MAX_MODEL_LEN(?:GTH)?1?"), "max-model-len"),
    (Pattern(r"(?:VLLM_)?GPU_MEM(?:ORY)?_UTIL(?:I[SZ]ATION)?1?"), "gpu-memory-utilization"),
)
"""Names under which images of one's own take what the engine is to be told."""


def told_by_environment(launch: Launch) -> Launch:
    """An image named after its engine that is started without a word, and told by variables what to serve."""
    image = "" if launch.image is None else launch.image.spelled.rpartition("/")[2]
    found = _IMAGE.search(image.partition(":")[0])
    if launch.argv or launch.settings or found is None or _OTHER_IMAGE.search(image):
        return launch
    command = _BY_IMAGE.get(found[1].lower(), _TRTLLM)
    settings = tuple(
        ConfigEntry(Located(flag, value.span, name, "derived"), value)
        for pattern, flag in _VARIABLES
        for name, value in launch.env.items()
        if pattern.fullmatch(name) and value.spelled.strip("\"'")
    )
    if not settings:
        return launch
    return launch._replace(argv=_stated.command(command, launch.at), settings=settings, entrypoint_of_image=False)
