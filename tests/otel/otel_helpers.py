"""The spans of a test, and what the tests of OpenTelemetry share. It needs the SDK of OpenTelemetry."""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

TIMEOUT = 60  # seconds after which a test has failed
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Spans(InMemorySpanExporter):
    """The spans that have ended, by their names."""

    def __init__(self):
        super().__init__()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self))

    def named(self, name):
        return [span for span in self.get_finished_spans() if span.name == name]

    def one(self, name):
        (span,) = self.named(name)
        return span


async def nothing(job):
    pass


def linked(span):
    return [(link.context.span_id, link.attributes["trioboss.link"]) for link in span.links]
