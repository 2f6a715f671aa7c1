"""The values that a batch handler may return: the result of each of its jobs."""

from uuid import UUID

import attrs

from trioboss.model.option_names import checks_init_keywords
from trioboss.model.payload import JsonInput

__all__ = ["BatchResult"]


@checks_init_keywords
@attrs.frozen
class BatchResult:
    """The result of one job of a batch: its output, or the error by which it failed.

    A handler that returns a list of these names every job of its batch: a job that is not named fails. ``error`` is an
    exception, text or JSON; also ``job.retry(…)`` or ``job.dead_letter(…)``.
    """

    id: UUID | str
    output: JsonInput = None
    error: object = None
