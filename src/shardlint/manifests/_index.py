"""Which forms a document may have, by what the forms say of themselves: the others are not asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, KeysView
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardlint.manifests import Form

_SIGNS = ("LANGUAGES", "KINDS", "KEYS", "WITHOUT")


class Index:
    """Forms in the order in which they are asked, each found by the signs that it names; without any, always."""

    def __init__(self, forms: Iterable[Form]) -> None:
        self._forms = sorted(forms, key=is_fallback)
        self._always = [place for place, form in enumerate(self._forms) if not any(hasattr(form, s) for s in _SIGNS)]
        self._by_language: dict[str, list[int]] = {}
        self._by_kind: dict[str, list[tuple[str, int]]] = {}
        self._by_keys: list[tuple[frozenset[str], frozenset[str], int]] = []
        for place, form in enumerate(self._forms):
            self._enter(place, form)

    @property
    def kinds(self) -> KeysView[str]:
        """Of the objects that a form may be asked for."""
        return self._by_kind.keys()

    def _enter(self, place: int, form: Any) -> None:
        for language in getattr(form, "LANGUAGES", ()):
            self._by_language.setdefault(language, []).append(place)
        for kind in getattr(form, "KINDS", ()):
            self._by_kind.setdefault(kind, []).append((getattr(form, "GROUP", ""), place))
        keys, without = (frozenset(getattr(form, name, ())) for name in ("KEYS", "WITHOUT"))
        if keys or without:
            self._by_keys.append((keys, without, place))

    def in_language(self, language: str) -> list[Form]:
        """The forms that a text in a language other than YAML may have."""
        return self._at({*self._always, *self._by_language.get(language, ())})

    def of_root(self, objects: Iterable[tuple[str, str]], keys: Collection[str]) -> list[Form]:
        """The forms that a document may have whose objects have these kinds and API versions, and its root these keys.

        A root that is no mapping has no keys.
        """
        found = set(self._always)
        for kind, version in objects:
            found.update(place for group, place in self._by_kind.get(kind, ()) if group in version)
        for wanted, without, place in self._by_keys if keys else ():
            if without.isdisjoint(keys) and not (wanted and wanted.isdisjoint(keys)):
                found.add(place)
        return self._at(found)

    def _at(self, places: Iterable[int]) -> list[Form]:
        return [self._forms[place] for place in sorted(places)]


def is_fallback(form: Form) -> bool:
    """Whether a form is asked only of a document that no other has."""
    return bool(getattr(form, "FALLBACK", False))
