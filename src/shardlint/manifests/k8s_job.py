"""Kubernetes Job, and what makes Jobs: CronJob and JobSet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES, kind, of_kind, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Sequence
from shardlint.text.source import Library

NAME = "k8s-job"
FILES = YAML_FILES
KINDS = ("Job", "CronJob", "JobSet")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every Job, CronJob and JobSet in the document; pods that run side by side are the copies."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _pods  # only where there is a pod to read

        for part, job in _job_specs(item):
            base = _pods.launch_of(item, NAME, job.get("parallelism"))._replace(unit=part)
            yield from _pods.launches(job.get("template", "spec"), base, document)


def _job_specs(item: Mapping) -> Iterator[tuple[str, Node]]:
    """The spec of each Job that the object makes, and a name for it inside the object."""
    if kind(item) == "JobSet":
        jobs = item.get("spec", "replicatedJobs")
        for job in jobs if isinstance(jobs, Sequence) else ():
            if (spec := job.get("template", "spec")) is not None:
                yield text(job.get("name")), spec
        return
    spec = item.get(*(("spec", "jobTemplate", "spec") if kind(item) == "CronJob" else ("spec",)))
    if spec is not None:
        yield "", spec
