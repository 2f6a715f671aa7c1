"""The instruments of the messaging conventions. Their attributes are queue, operation and kind of error: no ids."""

import attrs
from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.util.types import AttributeValue

__all__ = ["Instruments", "common_attributes"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)


@attrs.frozen
class Instruments:
    """Made once for each boss or app."""

    operation_duration: Histogram
    sent: Counter
    consumed: Counter
    process_duration: Histogram

    @classmethod
    def make(cls, meter: Meter) -> "Instruments":
        """The instruments of a meter."""

        def histogram(name: str, description: str) -> Histogram:
            return meter.create_histogram(
                name, unit="s", description=description, explicit_bucket_boundaries_advisory=_BOUNDS
            )

        return cls(
            histogram("messaging.client.operation.duration", "Duration of an operation on jobs."),
            meter.create_counter("messaging.client.sent.messages", "{message}", "Jobs that were sent."),
            meter.create_counter(
                "messaging.client.consumed.messages", "{message}", "Jobs that handlers were called with."
            ),
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
