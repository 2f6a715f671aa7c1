"""OpenTelemetry: spans and metrics for every operation on jobs, by the messaging conventions.

`instrument` is all there is. It is written as middleware and hooks on the public interface: a boss that is not
instrumented executes none of this. Only the API package of OpenTelemetry is needed (``pip install trioboss[otel]``);
the program brings the SDK and its exporter.

calls      spans of the methods of a boss: send, receive, settle
tracing    the context that travels with a job, and the spans of handlers
metrics    the instruments of the messaging conventions
"""

from typing import Literal

from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import TracerProvider, get_tracer

from trioboss._version import __version__
from trioboss.api.app import App
from trioboss.api.boss import Boss
from trioboss.api.sync import SyncBoss
from trioboss.errors import UsageError
from trioboss.events import JobFailed, LeaseExtended
from trioboss.model.option_names import checks_keywords
from trioboss.otel.calls import is_wrapped, wrap_calls
from trioboss.otel.metrics import Instruments
from trioboss.otel.tracing import Tracing

__all__ = ["instrument"]

_PARENTS = ("link", "child", "auto")


@checks_keywords
def instrument(
    boss_or_app: Boss | SyncBoss | App,
    *,
    parent: Literal["link", "child", "auto"] = "link",
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Emit spans and metrics for a boss, or for every boss that an app is started on. Call it before `work`. A
    `SyncBoss` has those of its calls.

    A send emits the span ``send QUEUE`` and stores its context with the job, the handler runs within ``process QUEUE``,
    wherever that is. ``parent`` says how the two are connected: by a ``link``, which keeps both traces readable if a
    job waits for long or has many siblings; as parent and ``child``, in one trace; or ``auto``: as a child if the job
    started within a minute, and is neither deferred nor a retry. A retry is also linked to the attempt before.
    """
    if parent not in _PARENTS:
        raise UsageError(f"parent: {parent!r} is not one of {', '.join(_PARENTS)}")
    tracer = get_tracer("trioboss", __version__, tracer_provider)
    instruments = Instruments.make(get_meter("trioboss", __version__, meter_provider))
    tracing = Tracing(tracer, instruments, parent)

    def attach_calls(boss: Boss | SyncBoss) -> None:
        if is_wrapped(boss):
            raise UsageError("boss_or_app: this boss is instrumented already")
        wrap_calls(boss, tracer, instruments)

    def attach(boss: Boss) -> None:
        attach_calls(boss)
        boss.listen(tracing.report_failed, JobFailed)
        boss.listen(tracing.report_extended, LeaseExtended)

    if isinstance(boss_or_app, App):
        boss_or_app.middleware.insert(0, tracing.process)  # outermost, so that it sees what the others do
        boss_or_app.on_start(attach)
    elif isinstance(boss_or_app, Boss):
        attach(boss_or_app)
        boss_or_app.use(tracing.process)
    elif isinstance(boss_or_app, SyncBoss):
        attach_calls(boss_or_app)
    else:
        raise UsageError(f"boss_or_app: {type(boss_or_app).__name__} is no Boss, SyncBoss or App")
