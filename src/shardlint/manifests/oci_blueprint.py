"""OCI AI Blueprints: recipes in JSON (`recipe_image_uri`, `recipe_node_shape`), alone or in deployment groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._objects import YAML_FILES, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar
from shardlint.text.source import Library

NAME = "oci-blueprint"
FILES = YAML_FILES
KEY = "recipe_image_uri"
KEYS = (KEY, "deployment_group", "deployments")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launch of a recipe, or of those of a group."""
    root = document.root
    if not isinstance(root, Mapping) or not document.source.holds(KEY):
        return
    from shardlint.manifests import _roles

    if KEY in root:
        yield from _of_recipe(root, root.get("deployment_name"))
    for deployment in _roles.entries(root.get("deployment_group", "deployments") or root.get("deployments")):
        recipe = deployment.get("recipe")
        if isinstance(recipe, Mapping):
            yield from _of_recipe(recipe, deployment.get("name") or recipe.get("deployment_name"))


def _of_recipe(recipe: Mapping, named: Node | None) -> Iterator[Launch]:
    """What the container starts on how many cards of a shape; the shape's name tells the card. Jobs serve nothing."""
    from shardlint.manifests import _devices, _pods
    from shardlint.manifests._started import started
    from shardlint.manifests._values import fragments, word

    if text(recipe.get("recipe_mode")) == "job":
        return
    env = _environment(recipe.get("recipe_container_env"))
    key = recipe.key(KEY)
    at = (named or key or recipe).span
    cards = _pods.number(recipe.get("recipe_nvidia_gpu_count")) or _pods.number(recipe.get("recipe_amd_gpu_count"))
    base = Launch(
        f"blueprint/{text(named)}",
        "blueprint",
        NAME,
        at,
        image=_pods.image_of(recipe.get(KEY)),
        gpu=_pods.image_of(recipe.get("recipe_node_shape")),
        pods=_nodes(recipe),
        replicas=_pods.number(recipe.get("recipe_replica_count")),
        unit=f"{text(named)}:{at.line}",
    )
    entrypoint, arguments = (
        fragments(recipe.get(f"recipe_container_{part}"), env) for part in ("command", "command_args")
    )
    for command in started(entrypoint, arguments, env, word):
        yield base._replace(
            at=command.at or at,
            argv=command.argv,
            env=command.env,
            entrypoint_of_image=command.entrypoint_of_image,
            gpus_per_pod=_devices.usable(cards, command.env),
            conditional=command.conditional,
        )


def _environment(entries: Node | None) -> dict[str, Maybe[str]]:
    from shardlint.manifests import _roles
    from shardlint.manifests._values import value_of

    env: dict[str, Maybe[str]] = {}
    for entry in _roles.entries(entries):
        value = entry.get("value")
        if (name := text(entry.get("key"))) and isinstance(value, Scalar):
            env[name] = Located("", value.span, value.spelled) if value.is_null else value_of(value)
    return env


def _nodes(recipe: Mapping) -> Maybe[int] | None:
    """Nodes of a shared pool that serve together, or the workers of a Ray cluster and its head."""
    from shardlint.manifests import _pods

    together = _pods.number(recipe.get("multinode_num_nodes_to_use_from_shared_pool"))
    workers = _pods.number(recipe.get("recipe_raycluster_params", "num_worker_nodes"))
    if together is not None or workers is None or isinstance(workers, Unknown):
        return together or workers
    return Located(workers.value + 1, workers.span, workers.spelled, "derived", f"a head + {workers.value} workers")
