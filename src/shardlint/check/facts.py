"""What a rule may ask for by the names of its parameters, and how each of them is found out.

A table answers for one deployment (or one file); what nobody asks for is never worked out.  An answer is a
`Located` value, an `Unknown` with its reason, `None` where a thing was not written and has no default, or one of
the objects `deployment`, `engine`, `geometry`, `layout` and `legal`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, TypeVar

from shardlint import engines
from shardlint.architectures import Rows, rows_of
from shardlint.check.layouts import layout_of, least_weights_of, legal_of, placement_of, sizes_as_told, sizes_of
from shardlint.check.memory import context_length_of, memory_of
from shardlint.check.reading import FileReading
from shardlint.check.settings import Settings
from shardlint.check.sharing import Shared
from shardlint.check.tenants import tenants_of
from shardlint.deployment import KNOBS, Container, Deployment, Launch, RayApplication, Told
from shardlint.engines.versions import Version
from shardlint.facts import Accelerator, Geometry
from shardlint.facts.hardware import Hardware
from shardlint.facts.settling import settle_by
from shardlint.findings import Ignore, Located, Maybe, Unknown
from shardlint.layout import Layout, Legal, Sizes
from shardlint.layout.lower_bound import LowerBound
from shardlint.layout.memory import Memory
from shardlint.layout.placement import Placement, Tenants
from shardlint.servers import ray
from shardlint.text import Library

T = TypeVar("T")

HARDWARE_SETTLED_BY = "--hardware SPEC, for example --hardware 8xH100"


class DeploymentFacts:
    """The facts of one deployment. Each public property is a name that rules may ask for."""

    def __init__(
        self,
        deployment: Deployment,
        library: Library,
        settings: Settings,
        of_file: Sequence[Deployment] = (),
        shared: Shared | None = None,
    ) -> None:
        self.deployment = deployment
        self.of_file = of_file
        self._registry = settings.registry
        self.engine = engines.engine(deployment.engine, self._registry.engines)
        self._library = library
        self._settings = settings
        self._shared = Shared() if shared is None else shared
        self._answers: dict[str, Any] = {}

    def answer(self, name: str) -> Any:
        """The fact of that name; AttributeError for a name that no table has, which is the rule's own fault."""
        answers = self._answers
        if name in answers:
            return answers[name]
        if name in MADE_ANEW:
            return getattr(self, name)
        if name in DERIVED:
            found = getattr(self, name)
        else:
            found = self._knob(name) if name in KNOBS else self._of_geometry(name)
        answers[name] = found
        return found

    def knob(self, name: str) -> Maybe[Any] | None:
        """A knob as the engine will have it: written, else possibly in an open word, else the default."""
        answer: Maybe[Any] | None = self.answer(name)
        return answer

    @property
    def told(self) -> Told:
        """All knobs, flags and facts by name, for conditions that ask for one after the other."""
        return Told(self._option, self.deployment.env, self.engine.environment)

    def _option(self, name: str) -> Maybe[Any] | None:
        if name in self._answers:
            known: Maybe[Any] | None = self._answers[name]
            return known
        field = name.replace("_", "-")
        if name in KNOBS or name in DERIVED or f"--{field}" not in self.engine.table.rows:
            answer: Maybe[Any] | None = self.answer(name)
            return answer
        written = self.deployment.engine_fields.get(field)
        return self._in_open_words(name) if written is None else written

    def once(self, work: Callable[[], T], *arguments: Hashable) -> T:
        """What `work` makes of the model under this release and the arguments, shared with deployments of the same."""
        if not isinstance(self.deployment.model, Located) or isinstance(self.geometry, Unknown):
            return work()  # why there is no model is said of the place where this deployment names it
        return self._shared.once(work, self.deployment.model.value, self.engine.name, self._version, *arguments)

    def _knob(self, name: str) -> Maybe[Any] | None:
        written = self.deployment.knobs.get(name)
        if written is not None:
            return written
        if (open_word := self._in_open_words(name)) is not None:
            return open_word
        default = self._defaults.get(name)
        if default is None:
            return None
        return Located(default, origin="default", source=f"the default of {self.label}")

    def _in_open_words(self, name: str) -> Unknown | None:
        """Where a flag that is not written may stand all the same."""
        for word in self.deployment.open_words[:1]:
            return word._replace(reason=f"flags may stand in {word.spelled}, which the file does not tell")
        return None

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        return self.engine.defaults(self._version)

    @property
    def label(self) -> str:
        """The engine and its release, as messages name it."""
        return f"{self.engine.label} {self._version}"

    @cached_property
    def engine_version(self) -> Located[Version]:
        """The release to judge by: the manifest's own, else the settings', else the newest that is known."""
        written = self.deployment.engine_version
        if isinstance(written, Located) and (version := Version.parse(written.value)):
            return written.with_value(version)
        if self._settings.vllm and self.engine.name == "vllm" and (given := Version.parse(self._settings.vllm)):
            return Located(given, origin="given", source="the settings")
        newest = Version.parse(self.engine.newest)
        assert newest is not None, self.engine.newest
        return Located(newest, origin="default", source="the newest release that is known")

    @property
    def _version(self) -> Version:
        return self.engine_version.value

    # The model

    @cached_property
    def geometry(self) -> Geometry | Unknown:
        """The model's numbers, or why there are none."""
        from shardlint.facts.models import geometry_of

        model = self.deployment.model
        if model is None:
            return Unknown("the manifest names no model", self.deployment.at, settle_by="naming the model")
        if isinstance(model, Unknown):
            return model
        found = self._shared.once(
            lambda: geometry_of(model.value, self._library, self._registry.models), "geometry", model.value
        )
        if isinstance(found, Unknown):
            return found._replace(span=found.span or model.span, settle_by=found.settle_by or settle_by(model.value))
        return found

    @property
    def architecture(self) -> Maybe[str]:
        """The model class that config.json names."""
        if isinstance(self.geometry, Unknown):
            return self.geometry
        if not self.geometry.architecture:
            reason = f"{self.geometry.origin} tells sizes of {self.geometry.model_id} and not its model class"
            return Unknown(reason, settle_by=settle_by(self.geometry.model_id))
        return Located(self.geometry.architecture, origin="derived", source=self.geometry.origin)

    @property
    def supports_pp(self) -> Maybe[bool]:
        """Whether the model class implements pipeline parallelism in this release."""
        if isinstance(self.architecture, Unknown):
            return self.architecture
        answer = self.engine.supports_pp(self.architecture.value, self._version)
        return answer if isinstance(answer, Unknown) else Located(answer, origin="derived", source=self.label)

    def _of_geometry(self, name: str) -> Maybe[Any]:
        if isinstance(self.geometry, Unknown):
            return self.geometry
        if name not in self.geometry.facts:
            raise AttributeError(f"no fact is called {name!r}")
        return self.geometry.facts[name]

    # The machines

    @property
    def hardware(self) -> Any:
        """What --hardware says, or None."""
        return self._settings.hardware

    @property
    def gpus_per_pod(self) -> Maybe[int] | None:
        """GPUs of each pod as the manifest states them."""
        return self.deployment.gpus_per_pod

    @cached_property
    def gpus_per_node(self) -> Maybe[int]:
        """GPUs that the engine finds on each of its hosts: the manifest's statement, else --hardware's."""
        written = self.deployment.gpus_per_pod
        if isinstance(written, Located):
            return written
        hardware = self._settings.hardware
        if hardware is not None:
            counts = {node.gpus for node in hardware.nodes}
            if len(counts) == 1:
                return Located(counts.pop(), origin="given", source="--hardware")
            return Unknown("--hardware names nodes with different numbers of GPUs")
        if isinstance(written, Unknown):
            return written._replace(settle_by=written.settle_by or HARDWARE_SETTLED_BY)
        return Unknown("the manifest does not say how many GPUs there are", settle_by=HARDWARE_SETTLED_BY)

    @cached_property
    def nodes(self) -> Maybe[int]:
        """Hosts that make one instance: the manifest's pods, else --hardware's nodes, else one."""
        written = self.deployment.pods
        if isinstance(written, Located) and written.value < 1:
            return Unknown("no pod is asked for", written.span, written.spelled)
        if written is not None:
            return written
        hardware = self._settings.hardware
        if hardware is not None:
            return Located(len(hardware.nodes), origin="given", source="--hardware")
        return Located(1, origin="default", source="nothing says that there are more")

    @cached_property
    def accelerators(self) -> Maybe[tuple[Accelerator, ...]]:
        """All cards that the manifest's (else --hardware's) name for the GPU may mean; more than one is common."""
        written = self.deployment.gpu
        if isinstance(written, Located) and (found := self._cards(written.value)):
            return written.with_value(found)
        if self._settings.hardware is not None:
            return self._given_cards(self._settings.hardware)
        if isinstance(written, Unknown):
            return written._replace(settle_by=written.settle_by or HARDWARE_SETTLED_BY)
        if written is not None:
            return Unknown(f"{written.value} is no GPU that is known", written.span, settle_by=HARDWARE_SETTLED_BY)
        return Unknown("the manifest does not name the GPU", settle_by=HARDWARE_SETTLED_BY)

    @cached_property
    def card(self) -> Accelerator | None:
        """The card, where it is named; of several that a name may mean the first, if all have the same kernels."""
        found = self.accelerators.value if isinstance(self.accelerators, Located) else ()
        return found[0] if found and len({card.compute_capability for card in found}) == 1 else None

    @property
    def platform(self) -> Located[str]:
        """What the engine runs on: rocm where a card or the image says so, else cuda."""
        cards = self.accelerators
        vendors = {card.vendor for card in cards.value} if isinstance(cards, Located) else set()
        image = self.deployment.server.primary.image
        is_rocm = "amd" in vendors or (isinstance(image, Located) and "rocm" in image.value)
        return Located("rocm" if is_rocm else "cuda", origin="derived", source="the cards and the image")

    def _given_cards(self, hardware: Hardware) -> Maybe[tuple[Accelerator, ...]]:
        """The card of --hardware, or all that its name may mean; of unequal cards the smallest."""
        cards = {card.id: card for node in hardware.nodes for _, card in node.cards}
        if len(cards) == 1:
            (card,) = cards.values()
            meant = self._cards(card.name) if card.memory_bytes is None else (card,)
            return Located(meant, origin="given", source="--hardware")
        if any(card.memory_bytes is None for card in cards.values()):
            return Unknown("--hardware does not tell the memory of every card", settle_by=HARDWARE_SETTLED_BY)
        smallest = min(cards.values(), key=lambda card: card.memory_bytes or 0)
        return Located((smallest,), origin="given", source="--hardware")

    def _cards(self, name: str) -> tuple[Accelerator, ...]:
        """The cards that a name may mean: a card's own, or that of a machine."""
        from shardlint.facts import accelerators

        found = accelerators.find(name, self._registry.accelerators)
        if found:
            return found
        from shardlint.facts import machines  # cards are named more often than what they are in

        machine = machines.find(name)
        if machine is None or machine.gpu.startswith("uncovered/"):
            return ()
        return (accelerators.by_id(machine.gpu),)

    @property
    def container(self) -> Container | None:
        """What surrounds the command in its container; None where the manifest describes none."""
        return self.deployment.server.primary.container

    @property
    def ray_starts(self) -> tuple[Launch, ...] | None:
        """The `ray start` commands beside the engine's; None where there are none."""
        return tuple(launch for launch in self.deployment.server.others if ray.starts_ray(launch)) or None

    @property
    def ray_application(self) -> RayApplication | None:
        """What Ray Serve is told; None where it does not start the engine."""
        return self.deployment.server.primary.ray

    @property
    def ray_cards(self) -> Located[int] | None:
        """The cards of a node as `ray start` says them."""
        return ray.told_cards(self.ray_starts or ())

    @property
    def engines_beside(self) -> tuple[Deployment, ...]:
        """Other engines that commands of the same container or script start, on the same GPUs."""
        unit = self.deployment.server.primary.unit
        others = (other for other in self.of_file if other is not self.deployment)
        return tuple(other for other in others if other.server.primary.unit == unit)

    @property
    def deployments_before(self) -> tuple[Deployment, ...]:
        """The deployments of the file that stand before this one."""
        before = (other for other in self.of_file if other is not self.deployment)
        at = (self.deployment.at.line, self.deployment.at.column)
        return tuple(other for other in before if (other.at.line, other.at.column) < at)

    @cached_property
    def followers(self) -> tuple[tuple[Launch, Told], ...] | None:
        """The commands of the other processes of the same engine instance, and what each is told; None without any."""
        server, among = self.deployment.server, self._registry.engines
        found = [
            (launch, DeploymentFacts(read, self._library, self._settings, self.of_file, self._shared).told)
            for launch in server.others
            if engines.recognise(launch, among) == server.engine
            for read in (
                engines.read(
                    server._replace(primary=launch, others=()),
                    among,
                    vllm=self._settings.vllm,
                    upgrade=self._settings.upgrade,
                ),
            )
        ]
        return tuple(found) or None

    @property
    def started_together(self) -> tuple[Deployment, ...]:
        """Other engines of the file that run on the same host at the same time, in containers of their own."""
        own = self.deployment.server.primary
        others = [other for other in self.of_file if other is not self.deployment]
        return tuple(
            other
            for other in others
            if own.together and other.server.primary.together == own.together and other.server.primary.unit != own.unit
        )

    @cached_property
    def tenants(self) -> Maybe[Tenants] | None:
        """The engines that run on the same host at the same time; None where it is alone."""
        return tenants_of(self)

    def beside(self, other: Deployment) -> DeploymentFacts:
        """The facts of another deployment of the file."""
        return DeploymentFacts(other, self._library, self._settings, self.of_file, self._shared)

    # The layout

    @cached_property
    def rows(self) -> Rows | Unknown:
        """Every weight and every cache of the model."""
        option = self.knob("quantization")
        quantization = option.value if isinstance(option, Located) else None
        families = self._registry.families
        return self.once(lambda: rows_of(self.geometry, families, quantization), "rows", quantization)

    @cached_property
    def world_size(self) -> Maybe[int]:
        """Ranks of one replica: TP x PP x PCP."""
        return self._product("tensor_parallel_size", "pipeline_parallel_size", "prefill_context_parallel_size")

    def _product(self, *names: str) -> Maybe[int]:
        product = 1
        span = None
        for name in names:
            size = self.knob(name)
            if isinstance(size, Unknown):
                return size
            product *= size.value if size is not None else 1
            span = span or (size.span if size is not None else None)
        return Located(product, span, origin="derived", source=" x ".join(names))

    @cached_property
    def sizes_as_told(self) -> Sizes | Unknown:
        """The same, possible or not."""
        return sizes_as_told(self)

    @cached_property
    def sizes(self) -> Sizes | Unknown:
        """The degrees of the layout together."""
        return sizes_of(self)

    @cached_property
    def layout(self) -> Layout | Unknown:
        """The ranks of the deployment, or why they are not known."""
        return layout_of(self)

    @cached_property
    def least_weights(self) -> Maybe[LowerBound]:
        """The least that the weights take, on the fullest GPU and in a replica."""
        return least_weights_of(self)

    @cached_property
    def context_length(self) -> Maybe[int] | None:
        """Tokens that a request may have at most; None where the engine fits the length to its memory."""
        return context_length_of(self)

    @cached_property
    def memory(self) -> Maybe[Memory]:
        """What is left of each GPU for the KV cache, and what it holds."""
        return memory_of(self)

    @property
    def memory_at(self) -> Callable[[int, int], Maybe[Memory]]:
        """The same with other tensor and data parallel sizes."""
        return lambda tensor, data: memory_of(self, layout_of(self, (tensor, data)))

    @cached_property
    def legal(self) -> Legal | Unknown:
        """Which values of one degree cut the model evenly, the others fixed."""
        return legal_of(self)

    @cached_property
    def placement(self) -> Maybe[Placement]:
        """Where the ranks run."""
        return placement_of(self)


DERIVED = frozenset(
    name for name, value in vars(DeploymentFacts).items() if isinstance(value, (property, cached_property))
) | {"deployment", "engine"}
MADE_ANEW = frozenset({"told", "memory_at"})
"""Kept, they would point back to the facts that keep them, and wait for the garbage collector."""


class FileFacts:
    """The facts of one file, for the linter's own rules."""

    def __init__(self, reading: FileReading, unused_ignores: Sequence[Ignore] = ()) -> None:
        self.file_problems = reading.problems
        self.duplicate_keys = reading.duplicates
        self.unused_ignores = unused_ignores

    def answer(self, name: str) -> Any:
        return getattr(self, name)


@cache
def parameters(function: Callable[..., Any]) -> tuple[Sequence[str], Sequence[tuple[str, Any]]]:
    """The parameters of a judge or applies function that must be known, and the others with their defaults."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names, needed = code.co_varnames[: code.co_argcount], code.co_argcount - len(defaults)
    return names[:needed], tuple(zip(names[needed:], defaults, strict=True))
