"""One managed online deployment of Azure Machine Learning."""

from __future__ import annotations

from shardlint.deployment import Launch, Word
from shardlint.findings import Maybe, Unknown
from shardlint.manifests import _interpolation, _resources, _stated
from shardlint.manifests._objects import text
from shardlint.manifests._pods import image_of, number
from shardlint.manifests._values import value_of, word
from shardlint.text.nodes import Mapping, Node, Scalar

MODELS = ("MODEL_NAME", "MODEL_ID", "MODEL", "HF_MODEL_ID", "MODEL_PATH")
ARGUMENTS = ("VLLM_ARGS", "VLLM_ARGUMENTS", "VLLM_EXTRA_ARGS")
"""Variables whose words the container's script hands to `vllm serve`."""


def launch_of(root: Mapping, form: str) -> Launch:
    """The container's engine: named by its arguments in the environment, else by its image."""
    called = root.get("name") or root.get("endpoint_name") or root
    file = root.source.path.replace("\\", "/").rpartition("/")[2]
    variables = root.get("environment_variables")
    machine = root.get("instance_type")
    base = Launch(
        f"deployment/{text(called)}" if text(called) else file,
        "managedOnlineDeployment",
        form,
        called.span,
        env=_environment(variables),
        image=image_of(root.get("environment", "image")),
        gpus_per_pod=_resources.requested(root),
        gpu=value_of(machine) if isinstance(machine, Scalar) and not machine.is_null else None,
        replicas=number(root.get("instance_count")),
        entrypoint_of_image=True,
        unit=file,
    )
    arguments = next((node for name in ARGUMENTS if (node := _scalar(variables, name)) is not None), None)
    model = next((value_of(node) for name in MODELS if (node := _scalar(variables, name)) is not None), None)
    if arguments is None and (model is None or not _is_called_vllm(root)):
        return base
    at = base.at if arguments is None else arguments.span
    words: list[Word] = []
    if arguments is not None:
        words += [word(fragment) for fragment in _interpolation.split(arguments.fragment())]
    named = model or Unknown("the image names the model", at)
    return base._replace(
        argv=(*_stated.command(_stated.VLLM, base.at, named), *words), at=at, entrypoint_of_image=False
    )


def _is_called_vllm(root: Mapping) -> bool:
    """Whether the deployment, its endpoint or its image bears the engine's name."""
    names = [root.get("name"), root.get("endpoint_name"), root.get("environment", "image"), root.get("environment")]
    return any("vllm" in text(name).lower() for name in names)


def _environment(variables: Node | None) -> dict[str, Maybe[str]]:
    entries = variables.items() if isinstance(variables, Mapping) else ()
    return {key.text: value.located() for key, value in entries if isinstance(value, Scalar) and not value.is_null}


def _scalar(variables: Node | None, name: str) -> Scalar | None:
    node = variables.get(name) if variables is not None else None
    return node if isinstance(node, Scalar) and not node.is_null else None
