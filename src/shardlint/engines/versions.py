"""Release numbers of engines: enough of PEP 440 to read and order them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PATTERN = re.compile(
    r"v?(?P<release>\d{1,9}(?:\.\d{1,9}){1,5})"
    r"(?:[-_.]?(?P<phase>a|b|rc)[-_.]?(?P<number>\d{1,9}))?"
    r"(?:[-_.]?post[-_.]?(?P<post>\d{1,9}))?"
    r"(?:\.dev(?P<dev>\d{1,9}))?"
    r"(?:\+[a-z0-9.]{1,64})?",
    re.IGNORECASE,
)
_PHASES = {"a": -3, "b": -2, "rc": -1}
_FINAL = 0


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A release such as 0.8.5.post1. Trailing zeros do not count, `text` is kept as written without its v."""

    release: tuple[int, ...]
    phase: int = _FINAL
    number: int = 0
    post: int = -1
    is_final: bool = True
    dev: int = 0
    text: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """Read `0.8.5.post1`, `v0.33.0`, `0.11.0rc2`; None where the text is no such number."""
        match = _PATTERN.fullmatch(text.strip())
        if match is None:
            return None
        release = tuple(int(part) for part in match["release"].split("."))
        while len(release) > 1 and release[-1] == 0:
            release = release[:-1]
        dev = match["dev"]
        return cls(
            release=release,
            phase=_PHASES[match["phase"].lower()] if match["phase"] else _FINAL,
            number=int(match["number"] or 0),
            post=-1 if match["post"] is None else int(match["post"]),
            is_final=dev is None,
            dev=int(dev or 0),
            text=text.strip().removeprefix("v").removeprefix("V"),
        )

    def __str__(self) -> str:
        return self.text
