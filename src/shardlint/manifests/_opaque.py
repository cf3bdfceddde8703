"""Scripts that are not at hand and named after the engine that they start (`/srv/vllm/vllm-server.sh`)."""

from __future__ import annotations

import re

from shardlint.deployment import Launch
from shardlint.findings import Located, Unknown
from shardlint.manifests import _stated

_ENGINES = {"vllm": _stated.VLLM, "sglang": _stated.SGLANG}
_SCRIPT = re.compile(
    r"(?:.*/)?[\w.-]*(vllm|sglang)[\w.-]*\.(?:sh|bash)"
    r"|(?:.*/)?(vllm|sglang)/(?:[\w.-]+/)?(?:start|run|serve|launch|entrypoint)[\w-]*\.(?:sh|bash)",
    re.IGNORECASE,
)
_OTHER_PURPOSE = re.compile(r"(?i)bench|proxy|router|gateway|health|check|stop|test|client|install|setup|build|watch")


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
