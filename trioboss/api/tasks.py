"""The decorated function of `app.worker`: a handler with methods that send jobs to its own queue."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Unpack, cast
from uuid import UUID

from trioboss.api.running_job import D, Surroundings
from trioboss.errors import UsageError
from trioboss.model.decoding import Decoder
from trioboss.model.job import SendOptions
from trioboss.model.job_context import current_surroundings
from trioboss.model.option_names import checks_keywords
from trioboss.model.payload import Json
from trioboss.model.payload import encode as check_encodable
from trioboss.postgres.caller import CallerConnection

if TYPE_CHECKING:
    # For the annotation only: a boss starts apps, and a task of an app sends with a boss.
    from trioboss.api.boss import Boss

__all__ = ["Task"]


@checks_keywords
class Task(Generic[D]):
    """A handler that was declared with `app.worker`, and the data that its jobs have. Called, it is the handler."""

    def __init__(
        self,
        handler: Callable[[Any], Any],
        queue: str,
        decoder: Decoder[D] | None,
        bosses: Sequence["Boss"],
    ) -> None:
        functools.update_wrapper(self, handler)
        self.handler = handler
        self.queue = queue
        self._decoder = decoder
        self._bosses = bosses

    def __repr__(self) -> str:
        return f"<Task {getattr(self.handler, '__qualname__', self.handler)!r} of queue {self.queue!r}>"

    def __call__(self, job: Any) -> Any:
        """Call the handler itself, for instance in a test."""
        return self.handler(job)

    def encode(self, data: D) -> Json:
        """The data as JSON, for ``boss.send(task.queue, task.encode(data))`` and for `SyncBoss`."""
        return cast("Json", data) if self._decoder is None else self._decoder.encode(data)

    def encode_scheduled(self, data: object) -> Json:
        """The data of a schedule as JSON: it is given as a value of the declared type, or as the JSON of one.

        Data that does not fit is refused here: every job of the schedule would fail.
        """
        try:
            encoded = self.encode(cast("D", data))
        except Exception as error:  # a decoder of the program may raise anything
            if not self._can_read(data):
                raise UsageError(
                    f"schedule: every job would fail, because the worker of queue {self.queue!r} cannot read its "
                    f"data: {error}; pass data= of the type that the worker declares"
                ) from None
            encoded = cast("Json", data)
        check_encodable(encoded)
        return encoded

    def _can_read(self, data: object) -> bool:
        try:
            cast("Decoder[D]", self._decoder).decode(cast("Json", data))
        except Exception:
            return False
        return True

    async def send(
        self,
        data: D,
        *,
        boss: "Boss | None" = None,
        conn: CallerConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job to the queue of this handler; as `boss.send`, with data of the declared type.

        ``boss``: the one to send with. Without it, in a handler the boss that runs the job, elsewhere the only boss
        that runs the app.
        """
        if "*" in self.queue:
            raise UsageError(f"send: {self.queue!r} is a pattern: send to one of its queues with boss.send")
        return await (boss or self._find_boss()).send(self.queue, self.encode(data), conn=conn, **options)

    def _find_boss(self) -> "Boss":
        """The boss of the running job, unless this app runs on others only; outside of handlers the app's only boss."""
        running = [boss for boss in self._bosses if not boss.has_ended]
        of_job = cast("Surroundings | None", current_surroundings.get())
        if of_job is not None and (of_job.boss in running or not running):
            return of_job.boss
        if len(running) != 1:
            runs_on = "several bosses" if running else "no boss"
            raise UsageError(f"boss: the app of queue {self.queue!r} runs on {runs_on} here: pass boss=")
        return running[0]
