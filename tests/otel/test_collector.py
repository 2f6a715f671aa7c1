"""Spans from end to end: they arrive at a collector."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import trio

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from trioboss.otel import instrument

TIMEOUT = 60  # seconds after which a test has failed


async def nothing(job):
    pass


class Collector(HTTPServer):
    """Takes spans by OTLP over HTTP on the loopback interface."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


async def test_spans_arrive_at_a_collector(boss):
    exporting = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, daemon=True)
        thread.start()
        provider = TracerProvider()
        exporter = exporting.OTLPSpanExporter(f"http://127.0.0.1:{collector.server_port}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        instrument(boss, tracer_provider=provider)
        await boss.create_queue("email")
        worker = await boss.work("email", nothing)
        with trio.fail_after(TIMEOUT):
            await boss.wait_for("email", await boss.send("email"))
            await boss.off_work(worker)
        await trio.to_thread.run_sync(provider.shutdown)
        collector.shutdown()
        thread.join()

    names = [
        span.name
        for body in collector.bodies
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert sorted(names) == ["process email", "send email"]
