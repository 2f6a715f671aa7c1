"""The events of a boss: what each kind tells, and who gets it."""

import pytest
import trio
from worker_helpers import TIMEOUT, next_of

import trioboss
from trioboss.events import JobCancelled, JobCreated, JobFailed, MonitorStates, Wip
from trioboss.model.states import JobState
from trioboss.testing import record


async def test_states_are_counted_with_zeros_sums_and_totals(dsn):
    async with trioboss.open_boss(dsn, migrate=False, monitor_interval=1) as boss:
        await boss.create_queue("a")
        await boss.create_queue("b")
        await boss.create_queue("empty")
        await boss.insert("a", [{"data": n} for n in range(3)])
        await boss.cancel("a", await boss.send("a"))
        await boss.send("b")
        await boss.fetch("b")
        async with boss.events(MonitorStates) as events:
            with trio.fail_after(TIMEOUT):
                told = await anext(events)

    zeros = {str(state): 0 for state in JobState}
    assert told.queues == {
        "a": zeros | {"created": 3, "cancelled": 1, "all": 4},
        "b": zeros | {"active": 1, "all": 1},
        "empty": zeros | {"all": 0},
    }
    assert told.totals == zeros | {"created": 3, "cancelled": 1, "active": 1, "all": 5}


async def test_work_in_progress_tells_what_a_worker_does_and_has_done(boss):
    hold = trio.Event()

    async def handle(job):
        if job.data == "bad":
            raise ValueError("no")
        await hold.wait()

    await boss.create_queue("q", retry_limit=0)
    worker = await boss.work("q", handle, concurrency=2, min_priority=-5)
    async with record(boss.events(Wip)) as recorder:
        with trio.fail_after(TIMEOUT):
            await boss.wait_for("q", await boss.send("q", "bad"))
            await boss.send("q", "long")
            told = await recorder.wait_for(Wip, lambda wip: wip.workers[0].failed and wip.workers[0].count)
            again = await recorder.wait_for(Wip, count=len(recorder.events) + 1)  # the long job still runs
        hold.set()

    (wip,) = told[-1].workers
    assert (wip.id, wip.queue, wip.state, wip.count, wip.failed) == (worker.id, "q", "active", 1, 1)
    assert (wip.options["concurrency"], wip.options["min_priority"], wip.options["batch_size"]) == (
        2,
        -5,
        None,
    )
    assert wip.last_error == "ValueError: no"
    assert wip.created_on < wip.last_error_on <= wip.last_job_started_on
    assert wip.created_on < wip.last_fetched_on
    assert wip.created_on < wip.last_job_ended_on
    assert wip.last_job_duration >= 0
    assert wip.name == boss._runtime.settings.worker_name
    assert again[-1].workers[0].count == 1


async def test_a_worker_that_has_done_nothing_has_no_times(boss):
    async def handle(job):
        pass

    await boss.create_queue("q")
    await boss.work("q", handle)
    async with boss.events(Wip) as events:
        with trio.fail_after(TIMEOUT):
            (wip,) = (await anext(events)).workers

    assert (wip.last_job_started_on, wip.last_job_ended_on, wip.last_job_duration) == (None, None, None)
    assert (wip.last_error, wip.last_error_on) == (None, None)


async def test_created_jobs_are_reported_to_those_who_ask_for_them(boss):
    await boss.create_queue("q")
    await boss.subscribe("event", "q")
    async with boss.events() as everything, record(boss.events(JobCreated)) as recorder:
        ids = [await boss.send("q"), await boss.send("q", priority=5), await boss.send_after("q", None, 60)]
        ids += await boss.insert("q", [{"data": 1}], return_ids=True)
        await boss.insert("q", [{"data": 1}, {"data": 2}])
        published = await boss.publish("event")
        with trio.fail_after(TIMEOUT):
            events = await recorder.wait_for(JobCreated, count=6)
        await boss.cancel("q", ids[0])
        with trio.fail_after(TIMEOUT):
            seen = []
            while not seen or not isinstance(seen[-1], JobCancelled):
                seen.append(await anext(everything))

    assert [event.id for event in events] == [*ids, None, *published]
    assert (events[4].queue, events[4].count, events[5].queue) == ("q", 2, None)
    assert not [event for event in seen if isinstance(event, JobCreated)]


async def test_a_refused_job_is_not_reported_as_created(boss):
    await boss.create_queue("q", policy="exclusive")
    async with record(boss.events(JobCreated)) as recorder:
        sent = await boss.send("q")
        assert await boss.send("q") is None
        last = await boss.send("short")
        with trio.fail_after(TIMEOUT):
            events = await recorder.wait_for(JobCreated, count=2)
    assert [event.id for event in events] == [sent, last]


@pytest.mark.parametrize("running", [False, True])
async def test_a_cancelled_job_is_reported_once(boss, running):
    started = trio.Event()

    async def handle(job):
        started.set()
        await trio.sleep_forever()

    await boss.create_queue("q")
    id = await boss.send("q")
    async with record(boss.events(JobCancelled)) as recorder:
        if running:
            worker = await boss.work("q", handle)
            with trio.fail_after(TIMEOUT):
                await started.wait()
        await boss.cancel("q", id)
        with trio.fail_after(TIMEOUT):
            await recorder.wait_for(JobCancelled)
            if running:
                await boss.off_work(worker)

    (event,) = recorder.events
    assert (event.queue, event.id, event.attempt) == ("q", id, 1 if running else None)
    assert (event.ran is not None) == running


async def test_the_cause_in_an_exception_group_is_named_when_an_actor_is_restarted(boss, monkeypatch):
    from trioboss.events import ActorRestarted

    crashed = trio.Event()

    async def crash_once(*args, **kwargs):
        if not crashed.is_set():
            crashed.set()
            raise ExceptionGroup("Exceptions from Trio nursery", [KeyError("x"), ValueError("the cause")])
        await trio.sleep_forever()

    async def handle(job):
        pass

    await boss.create_queue("q")
    async with boss.events(ActorRestarted) as events:
        monkeypatch.setattr("trioboss.actors.dispatcher.Dispatcher.run", crash_once)
        await boss.work("q", handle)
        with trio.fail_after(TIMEOUT):
            event = await next_of(ActorRestarted, events)

    assert event.error == "KeyError: 'x'; ValueError: the cause"


async def test_the_attributes_notes_and_causes_of_an_exception_are_kept(boss):
    class HttpError(Exception):
        def __init__(self, status):
            super().__init__("refused")
            self.status = status
            self.headers = {"retry-after": "5"}
            self.response = object()
            self._secret = "hidden"

    async def handle(job):
        try:
            raise OSError(5, "cable")
        except OSError as cause:
            error = HttpError(503)
            error.add_note("while sending")
            raise error from cause

    await boss.create_queue("q", retry_limit=0)
    await boss.work("q", handle)
    with trio.fail_after(TIMEOUT):
        output = (await boss.wait_for("q", await boss.send("q"))).output

    assert (output["name"], output["message"]) == ("HttpError", "refused")
    assert (output["status"], output["headers"]) == (503, {"retry-after": "5"})
    assert output["notes"] == ["while sending"]
    assert (output["cause"]["name"], "HttpError" in output["stack"]) == ("OSError", True)
    assert not {"response", "_secret"} & output.keys()


class Coded(Exception):
    code = "E1"
    reason = None
    __slots__ = ("status",)

    def __init__(self):
        self.status = 503

    @property
    def retriable(self):
        return True

    @property
    def broken(self):
        raise RuntimeError("a bug of the exception")

    def method(self):
        return "not data"


class Longer(Coded):
    code = "E2"


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (Coded(), {"code": "E1", "status": 503, "retriable": True}),
        (Longer(), {"code": "E2", "status": 503, "retriable": True}),
        (FileNotFoundError(2, "no such file", "a.txt"), {"errno": 2, "filename": "a.txt"}),
        (SystemExit(3), {"code": 3}),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_the_attributes_of_an_exceptions_classes_are_kept(boss, error, kept):
    async def handle(job):
        raise error

    await boss.create_queue("q", retry_limit=0)
    await boss.work("q", handle)
    with trio.fail_after(TIMEOUT):
        output = (await boss.wait_for("q", await boss.send("q"))).output

    described = output.keys() - {"name", "message", "stack", "strerror"}
    assert {name: output[name] for name in described} == kept


@pytest.mark.parametrize(
    "act",
    [
        lambda: {"card": "4242"}.number,
        lambda: "4242 4242 \ud800".encode(),
    ],
    ids=["attribute", "encoding"],
)
async def test_the_value_that_an_error_is_about_is_not_kept(boss, act):
    async def handle(job):
        act()

    await boss.create_queue("q", retry_limit=0)
    await boss.work("q", handle)
    with trio.fail_after(TIMEOUT):
        output = (await boss.wait_for("q", await boss.send("q"))).output

    assert not {"obj", "object"} & output.keys()


async def test_a_document_of_any_kind_is_redacted(dsn):
    def redact(error):
        error.pop("card", None)
        return {name: "****" if name == "value" else value for name, value in error.items()}

    given = {"card": "4242", "code": 5}
    stored = []
    async with trioboss.open_boss(dsn, migrate=False, redact=redact) as boss:
        await boss.create_queue("q", retry_limit=0)
        for error in (["4242"], 4242, given):
            id = await boss.send("q")
            await boss.fail("q", (await boss.fetch("q"))[0], error)
            with trio.fail_after(TIMEOUT):
                stored.append((await boss.wait_for("q", id)).output)

    assert stored == [{"value": "****"}, {"value": "****"}, {"code": 5}]
    assert given == {"card": "4242", "code": 5}


async def test_errors_are_redacted_before_they_are_stored(dsn):
    def redact(error):
        return {**error, "message": error["message"].replace("4242", "****"), "stack": ""}

    async def handle(job):
        raise ValueError("card 4242")

    async with trioboss.open_boss(dsn, migrate=False, redact=redact) as boss:
        await boss.create_queue("q", retry_limit=0)
        await boss.work("q", handle)
        with trio.fail_after(TIMEOUT):
            by_handler = await boss.wait_for("q", await boss.send("q"))
        await boss.create_queue("q2", retry_limit=0)
        id = await boss.send("q2")
        await boss.fail("q2", (await boss.fetch("q2"))[0], "card 4242")
        with trio.fail_after(TIMEOUT):
            by_call = await boss.wait_for("q2", id)

    assert by_handler.output == {"name": "ValueError", "message": "card ****", "stack": ""}
    assert by_call.output == {"message": "card ****", "stack": ""}


async def test_an_error_that_cannot_be_redacted_is_not_stored(dsn):
    def redact(error):
        raise KeyError("a bug of the hook")

    async def handle(job):
        raise ValueError("card 4242")

    async with trioboss.open_boss(dsn, migrate=False, redact=redact) as boss:
        await boss.create_queue("q", retry_limit=0)
        await boss.work("q", handle)
        with trio.fail_after(TIMEOUT):
            job = await boss.wait_for("q", await boss.send("q"))

    assert job.output == {"name": "ValueError", "message": "not stored: redact raised KeyError"}


async def test_a_failure_names_the_key_that_it_blocks(boss):
    async def handle(job):
        raise ValueError("no")

    for name, policy in (("orders", "key_strict_fifo"), ("mail", "singleton")):
        await boss.create_queue(name, policy=policy, retry_limit=0)
    async with record(boss.events(JobFailed)) as recorder:
        for name in ("orders", "mail"):
            await boss.work(name, handle)
            await boss.send(name, singleton_key="k")
        with trio.fail_after(TIMEOUT):
            failures = await recorder.wait_for(JobFailed, count=2)

    assert {failure.queue: failure.blocked_key for failure in failures} == {"orders": "k", "mail": None}


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [
        ((), r"name the kinds of events, as in boss\.listen\(callback, JobFailed\)"),
        (("JobFailed",), "'JobFailed' is not a class of events"),
        ((trioboss.Job,), "Job.* is not a class of events"),
        ((trioboss.Event,), r"call events\(\) without one"),
    ],
)
async def test_kinds_of_which_there_is_no_event_are_refused(boss, kinds, problem):
    with pytest.raises(trioboss.UsageError, match=problem):
        boss.listen(print, *kinds)
    if kinds:
        with pytest.raises(trioboss.UsageError, match=problem):
            boss.events(*kinds)


async def test_a_listener_gets_the_events_that_are_made_only_for_their_readers(boss):
    created, counted = [], trio.Event()
    boss.listen(created.append, trioboss.JobCreated)
    boss.listen(lambda event: counted.set(), trioboss.Wip)

    async def handle(job):
        pass

    await boss.work("short", handle)
    id = await boss.send("short")
    with trio.fail_after(TIMEOUT):
        await counted.wait()

    assert [event.id for event in created] == [id]
