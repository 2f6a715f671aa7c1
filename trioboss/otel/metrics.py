"""The instruments of the messaging conventions. Their attributes are queue, operation and kind of error: no ids."""

from collections import Counter
from collections.abc import Iterator
from threading import Lock

import attrs
from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation
from opentelemetry.util.types import AttributeValue

__all__ = ["Instruments", "Tally", "common_attributes"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)


@attrs.define(eq=False)
class Tally:
    """Counts jobs by queue and kind of error. The meter asks for the counts when it collects them: a counter of its own
    takes ten times as long for each job.
    """

    _operation: str
    _counts: Counter[tuple[str, str | None]] = attrs.field(factory=Counter, init=False)
    _lock: Lock = attrs.field(factory=Lock, init=False)  # any number of threads share a SyncBoss

    def add(self, count: int, queue: str, error: str | None = None) -> None:
        """Count jobs."""
        with self._lock:
            self._counts[queue, error] += count

    def observe(self, _: CallbackOptions) -> Iterator[Observation]:
        """The counts so far, for the meter."""
        with self._lock:
            counts = list(self._counts.items())
        for (queue, error), count in counts:
            attributes = common_attributes(self._operation, self._operation, queue)
            if error is not None:
                attributes["error.type"] = error
            yield Observation(count, attributes)


@attrs.frozen
class Instruments:
    """Made once for each boss or app."""

    operation_duration: Histogram
    sent: Tally
    consumed: Tally
    process_duration: Histogram

    @classmethod
    def make(cls, meter: Meter) -> "Instruments":
        """The instruments of a meter."""

        def histogram(name: str, description: str) -> Histogram:
            return meter.create_histogram(
                name, unit="s", description=description, explicit_bucket_boundaries_advisory=_BOUNDS
            )

        def tally(name: str, operation: str, description: str) -> Tally:
            counted = Tally(operation)
            meter.create_observable_counter(name, [counted.observe], "{message}", description)
            return counted

        return cls(
            histogram("messaging.client.operation.duration", "Duration of an operation on jobs."),
            tally("messaging.client.sent.messages", "send", "Jobs that were sent."),
            tally("messaging.client.consumed.messages", "process", "Jobs that handlers were called with."),
            histogram("messaging.process.duration", "Duration of a handler's call."),
        )


def common_attributes(operation: str, kind: str, queue: str | None) -> dict[str, AttributeValue]:
    """The attributes that spans and metrics share."""
    attributes: dict[str, AttributeValue] = {
        "messaging.system": "trioboss",
        "messaging.operation.name": operation,
        "messaging.operation.type": kind,
    }
    if queue is not None:
        attributes["messaging.destination.name"] = queue
    return attributes
