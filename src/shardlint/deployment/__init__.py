"""Where manifests and engines meet: what is started, on what, and how the engine reads it."""

from shardlint.deployment.deployment import Deployment, FlagProblem
from shardlint.deployment.knobs import KNOBS, Knob
from shardlint.deployment.launch import ConfigEntry, Container, Launch, Probe, RayApplication, Server, Word
from shardlint.deployment.told import NotTold, Told

__all__ = [
    "KNOBS",
    "ConfigEntry",
    "Container",
    "Deployment",
    "FlagProblem",
    "Knob",
    "Launch",
    "NotTold",
    "Probe",
    "RayApplication",
    "Server",
    "Told",
    "Word",
]
