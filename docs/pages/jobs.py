"""The fields of a job, for `Job` and for the job of a handler, and the methods of the latter."""

import inspect

import attrs

import trioboss
from docs.pages.docstrings import attribute_texts, attribute_types
from trioboss.model.handed_job import HandedJob
from trioboss.model.job import Job

__all__ = ["describe_job_fields", "describe_running_job", "job_fields"]

_METHODS = "data boss context cancelled transaction complete progress extend touch retry dead_letter"


def job_fields() -> dict[str, tuple[str, str]]:
    """The type and the meaning of each field of a job."""
    types, texts = attribute_types(Job), attribute_texts(Job)
    fields = {}
    for field in attrs.fields(Job):
        shared = inspect.getattr_static(HandedJob, field.name, None)
        text = texts.get(field.name) or (inspect.getdoc(shared) if isinstance(shared, property) else "")
        fields[field.name] = (types[field.name], " ".join((text or "").split()))
    return fields


def describe_job_fields() -> str:
    """A table of the fields of `Job`."""
    rows = [
        f"| `{name}` | `{type}` | {text.replace('``', '`')} |".replace(" | None`", r" \| None`")
        for name, (type, text) in job_fields().items()
    ]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows, ""])


def describe_running_job() -> str:
    """The methods of a handler's job, and its other fields."""
    lines = ["```{eval-rst}", ".. autoclass:: trioboss.RunningJob()", ""]
    for name in _METHODS.split():
        member = inspect.getattr_static(trioboss.RunningJob, name)
        kind = "autoproperty" if isinstance(member, property) else "automethod"
        lines.append(f"   .. {kind}:: {name}")
    shared = [name for name in job_fields() if name not in _METHODS.split() and hasattr(HandedJob, name)]
    listed = ", ".join(f"`{name}`" for name in (*shared, "keep_until", "lease"))
    return "\n".join(
        [*lines, "```", "", f"It also has these fields of a [job](values.md#jobs): {listed}.", ""]
    )
