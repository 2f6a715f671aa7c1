"""Each event in one line for people: the text of the log, in `trioboss worker` and in programs with `open_boss`."""

from collections.abc import Callable
from typing import Any, Final

from trioboss import events
from trioboss.events import Event
from trioboss.model.texts import count, printable, show_seconds

__all__ = ["describe_event"]

_IDS = 5  # that a line shows
_RECOVERY_REASONS: Final = {
    "expired": "expired",
    "lost": "the worker is gone",
    "released": "the worker has stopped, no retry is spent",
}


def describe_event(event: Event) -> str:
    """The event as text, without the queue, id and attempt that it is about, and without payloads."""
    return printable(_TEXTS[type(event)](event))


def _describe_failure(event: events.JobFailed) -> str:
    text = "failed" if event.state == "failed" else "failed, will be retried"
    text += f": {event.error}, waited {show_seconds(event.waited)}, ran {show_seconds(event.ran)}"
    if event.dead_letter is not None:
        text += f"; a copy is in {event.dead_letter!r}"
    if event.blocked_key is not None:
        text += f"; it blocks key {event.blocked_key!r} until it is retried or deleted"
    return text


def _describe_recovery(event: events.JobsRecovered) -> str:
    reason = _RECOVERY_REASONS[event.outcome]
    more = f" and {len(event.ids) - _IDS} more" if len(event.ids) > _IDS else ""
    return (
        f"{count(len(event.ids), 'job')} recovered, {reason}: {', '.join(map(str, event.ids[:_IDS]))}{more}"
    )


def _describe_listener_up(event: events.ListenerUp) -> str:
    again = "" if event.after is None else f" again, after {show_seconds(event.after)}"
    return (
        f"listener: polling{again}, notifications do not arrive" if event.polling else f"listener: up{again}"
    )


def _describe_listener_down(event: events.ListenerDown) -> str:
    if not event.seconds:
        return f"listener: connection lost, reconnecting: {event.reason}"
    return f"listener: no connection for {show_seconds(event.seconds)}, reconnecting: {event.reason}"


_TEXTS: Final[dict[type[Event], Callable[[Any], str]]] = {
    events.JobCreated: lambda e: "sent" if e.count == 1 else f"{e.count} jobs sent",
    events.JobStarted: lambda e: f"started, waited {show_seconds(e.waited)}",
    events.JobCompleted: lambda e: f"completed, waited {show_seconds(e.waited)}, ran {show_seconds(e.ran)}",
    events.JobFailed: _describe_failure,
    events.LateError: lambda e: (
        f"ended after it was settled or cancelled, and its end has no effect: {e.error}"
    ),
    events.JobCancelled: lambda e: "cancelled" if e.ran is None else f"cancelled, ran {show_seconds(e.ran)}",
    events.LeaseExtended: lambda e: f"lease extended: it expires {show_seconds(e.expire_in)} after its start",
    events.JobReleased: lambda e: "released: it is queued again, no retry is spent",
    events.LeaseLostEvent: lambda e: f"lost: {e.reason}",
    events.JobStuck: lambda e: (
        "stuck: its handler was cancelled and does not end, and occupies its slot until it does: "
        "a handler has to let trio.Cancelled pass"
    ),
    events.JobsRecovered: _describe_recovery,
    events.TickFired: lambda e: f"schedule {e.key or '-'} fired for {e.due:%Y-%m-%d %H:%M:%S} UTC",
    events.QueueWarning: lambda e: f"{e.warning}: {e.message}",
    events.ListenerUp: _describe_listener_up,
    events.ListenerDown: _describe_listener_down,
    events.LeaderChanged: lambda e: (
        f"maintenance: this worker {'does it' if e.leads else 'no longer does it'}"
    ),
    events.LoopBlocked: lambda e: (
        f"a handler blocked the event loop for {show_seconds(e.seconds)}: run blocking code with thread=True"
    ),
    events.ActorRestarted: lambda e: f"{e.actor}: crashed and was restarted: {e.error}",
    events.ErrorEvent: lambda e: f"{e.actor}: {e.error}",
    events.Wip: lambda e: f"{count(sum(worker.count for worker in e.workers), 'job')} running",
    events.MonitorStates: lambda e: f"{count(len(e.queues), 'queue')} counted",
    events.Stopped: lambda e: "stopped",
}
