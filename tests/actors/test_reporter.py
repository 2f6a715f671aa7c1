"""The stream of events: complete for every subscriber, never blocking, one log line without a payload each."""

import logging
from datetime import timedelta
from uuid import UUID

import pytest
import trio
import trio.testing
from scripted_ports import NOON, make_job

from trioboss import events as kinds
from trioboss.actors.reporter import Reporter
from trioboss.event_texts import describe_event
from trioboss.testing import record

ID = UUID(int=7)


async def test_every_subscriber_gets_the_events_from_then_on(reporter):
    reporter.report(kinds.ListenerUp())
    async with record(reporter.subscribe()) as first, record(reporter.subscribe()) as second:
        reporter.report(kinds.ErrorEvent("actor", "error"))
        await first.wait_for(kinds.ErrorEvent)
        await second.wait_for(kinds.ErrorEvent)

    assert first.events == second.events == [kinds.ErrorEvent("actor", "error")]


async def test_a_subscriber_that_does_not_read_blocks_nothing(reporter):
    async with reporter.subscribe() as stream:
        for number in range(10_050):
            reporter.report(kinds.ErrorEvent("actor", str(number)))
        reporter.close()
        received = [event async for event in stream]

    assert len(received) == 10_000


async def test_streams_end_when_the_boss_does(reporter):
    async with reporter.subscribe() as stream:
        reporter.report(kinds.Stopped())
        reporter.close()

        assert [event async for event in stream] == [kinds.Stopped()]


async def test_events_without_a_reader_need_not_be_made(reporter):
    reporter.logger.setLevel(logging.INFO)
    try:
        assert not reporter.has_reader(kinds.JobStarted)
        assert reporter.has_reader(kinds.JobCompleted)
        async with reporter.subscribe():
            assert reporter.has_reader(kinds.JobStarted)
    finally:
        reporter.logger.setLevel(logging.NOTSET)


async def test_a_subscriber_of_some_kinds_gets_no_others_and_causes_no_others(reporter):
    reporter.logger.setLevel(logging.CRITICAL)
    wanted = []

    async def wait():
        await reporter.wait_demanded()
        wanted.append(trio.current_time())

    try:
        async with trio.open_nursery() as nursery, reporter.subscribe(kinds.Stopped) as stream:
            nursery.start_soon(wait)
            await trio.sleep(1)
            assert reporter.has_reader(kinds.Stopped)
            assert not reporter.has_reader(kinds.JobStarted)
            assert not wanted
            reporter.report(kinds.ListenerUp())
            reporter.report(kinds.Stopped())
            assert await anext(stream) == kinds.Stopped()
            async with reporter.subscribe():
                await trio.sleep(1)
                assert wanted
    finally:
        reporter.logger.setLevel(logging.NOTSET)


async def test_work_in_progress_is_wanted_only_while_it_has_a_subscriber():
    reporter = Reporter()
    waited = []

    async def wait():
        await reporter.wait_demanded()
        waited.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(5)
        assert not waited
        async with reporter.subscribe():
            await trio.testing.wait_all_tasks_blocked()
    assert waited == [5]


EVENTS = [
    kinds.JobStarted("q", ID, 1, 0.5),
    kinds.JobCompleted("q", ID, 1, 0.5, 100.0),
    kinds.JobFailed("q", ID, 1, 0.5, 0.5, "Error: a\nb\x1b[31m\u2028c", "retry"),
    kinds.LateError("q", ID, 1, "Error: a\nb"),
    kinds.JobReleased("q", ID, 1),
    kinds.JobCreated("q", ID),
    kinds.JobCancelled("q", ID, 1),
    kinds.LeaseExtended("q", ID, 1, 60.0),
    kinds.LeaseLostEvent("q", ID, 1, "gone\r\naway"),
    kinds.JobStuck("q", ID, 1),
    kinds.JobsRecovered("q", (ID,), "lost"),
    kinds.TickFired("q", "", NOON, ID),
    kinds.Wip(()),
    kinds.MonitorStates({"q": {"created": 1}}),
    kinds.QueueWarning(None, "old_snapshot", "a\nb"),
    kinds.ListenerUp(),
    kinds.ListenerDown("a\nb"),
    kinds.LeaderChanged(True),
    kinds.LoopBlocked(2.0),
    kinds.ActorRestarted("actor", "a\nb"),
    kinds.ErrorEvent("actor", "a\nb"),
    kinds.Stopped(),
]


def test_every_kind_of_event_is_among_these():
    declared = {getattr(kinds, name) for name in kinds.__all__} - {kinds.Event, kinds.WorkerWip}

    assert {type(event) for event in EVENTS} == declared


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_one_line(event):
    line = describe_event(event)

    assert line
    assert line.isprintable()


async def test_no_payload_is_in_any_event(work, open_worker, events, caplog):
    caplog.set_level(logging.DEBUG, "trioboss")
    work.retries = False
    work.add(
        *(make_job({"canary": "c0ffee", "do": do}, expire_in=5) for do in ("end", "fail", "expire", "huge"))
    )

    async def handler(job):
        if job.data["do"] == "fail":
            raise ValueError("without a word about it")
        if job.data["do"] == "expire":
            await trio.sleep_forever()
        if job.data["do"] == "huge":
            return ["c0ffee" * 1000]
        return "c0ffee"

    async with open_worker(handler):
        await work.until(lambda: len(work.outcomes) == 4)

    assert len(events.of(kinds.JobStarted)) == 4
    assert "c0ffee" not in repr(events.events)
    assert "c0ffee" not in caplog.text
    assert len(caplog.records) >= 8
    assert all(record.getMessage().isprintable() for record in caplog.records)


async def test_the_wait_of_a_job_counts_from_when_it_could_have_started(work, open_worker, events):
    work.add(make_job(created_on=NOON, start_after=NOON + timedelta(seconds=7)))
    await trio.sleep(10)

    async def handler(job):
        pass

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)

    assert events.of(kinds.JobStarted)[0].waited == 3


async def test_a_job_that_was_leased_ahead_has_waited_until_its_handler_started(work, open_worker, events):
    first, second = make_job(), make_job()
    work.add(first, second)

    async def handler(job):
        await trio.sleep(5)

    async with open_worker(handler, prefetch=5):
        await work.until(lambda: len(work.active) == 2)
        await trio.sleep(1)
        assert [event.id for event in events.of(kinds.JobStarted)] == [first.id]
        await work.until(lambda: len(work.outcomes) == 2)

    assert [event.waited for event in events.of(kinds.JobStarted)] == [0, 5]
    assert [(event.waited, event.ran) for event in events.of(kinds.JobCompleted)] == [(0, 5), (5, 5)]
