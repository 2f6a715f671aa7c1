"""An instrumented boss, and its spans."""

import pytest
import trio

TIMEOUT = 60  # seconds after which a test has failed


@pytest.fixture
def spans():
    from otel_helpers import Spans  # tests that have no SDK of OpenTelemetry are skipped before

    return Spans()


@pytest.fixture
def run(boss, spans):
    """Run a handler on one job of an instrumented boss; return the ended job."""
    from trioboss.otel import instrument

    async def run(handler, data=None, *, parent="link", retry_limit=0, send=None, **options):
        instrument(boss, parent=parent, tracer_provider=spans.provider)
        await boss.create_queue("email", retry_limit=retry_limit)
        await boss.work("email", handler, **options)
        id = await boss.send("email", data, **(send or {}))
        with trio.fail_after(TIMEOUT):
            return await boss.wait_for("email", id)

    return run
