"""One recipe of the vLLM project."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import ConfigEntry, Launch, Word
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import _stated
from shardlint.manifests._objects import text
from shardlint.manifests._values import NO_ENV, fragments, value_of, word
from shardlint.text.nodes import Mapping, Node, Scalar


def launches_of(recipe: Mapping, form: str) -> Iterator[Launch]:
    """What each variant says of the command; a recipe without variants is one itself."""
    title = text(recipe.get("meta", "slug")) or text(recipe.get("model", "model_id"))
    variants = recipe.get("variants")
    named = list(variants.items()) if isinstance(variants, Mapping) and len(variants) else [(None, recipe)]
    for key, variant in named:
        name = f"recipe/{title}" if key is None else f"recipe/{title}/{key.text}"
        at = (recipe.get("model", "model_id") or recipe).span if key is None else key.span
        yield _of_variant(recipe, variant, Launch(name, "recipe", form, at, unit=name))


def _of_variant(recipe: Mapping, variant: Node, base: Launch) -> Launch:
    model = variant.get("model_id") or recipe.get("model", "model_id")
    shared, own = recipe.get("model", "base_args"), variant.get("extra_args")
    words = [part for node in (shared, own) for item in fragments(node, NO_ENV) for part in _parts(word(item))]
    strategies = recipe.get("compatible_strategies")
    more = Unknown(
        "the strategy and the hardware that are chosen add arguments",
        strategies.span if strategies is not None else base.at,
        "the arguments of the strategy",
    )
    named = value_of(model) if isinstance(model, Scalar) else None
    return base._replace(
        argv=(*_stated.command(_stated.VLLM, base.at, named), *_omni(recipe), *words, more),
        settings=tuple(_size(variant)),
        env=_environment(recipe.get("model", "base_env"), variant.get("extra_env")),
    )


def _parts(item: Word) -> Iterator[Word]:
    """Arguments are pasted into a command line, so that a flag and its value may stand in one of them."""
    flag, blank, value = item.value.partition(" ") if isinstance(item, Located) else ("", "", "")
    if isinstance(item, Located) and blank and flag.startswith("--"):
        yield from (item.with_value(flag), item.with_value(value.strip()))
    else:
        yield item


def _omni(recipe: Mapping) -> Iterator[Word]:
    """Recipes of vLLM-Omni are started by a flag that stands in none of their arguments."""
    if (section := recipe.get("omni")) is not None:
        yield Located("--omni", section.span, "omni", "derived")


def _size(variant: Node) -> Iterator[ConfigEntry]:
    """The size to which a variant is held; one for each kind of card is none until the card is chosen."""
    sizes = variant.get("tp")
    if isinstance(sizes, Mapping):
        by_card = Unknown("the card that is chosen decides", sizes.span, sizes.spelled)
        yield ConfigEntry(Located("tensor-parallel-size", sizes.span, "tp", "derived"), by_card)
    else:
        yield from _stated.entry("tensor-parallel-size", variant, "tp")


def _environment(*layers: Node | None) -> dict[str, Maybe[str]]:
    return {
        key.text: value_of(value)
        for layer in layers
        if isinstance(layer, Mapping)
        for key, value in layer.items()
        if isinstance(value, Scalar) and not value.is_null
    }
