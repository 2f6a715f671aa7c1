"""Log lines of a real worker: fields of the job, also inside handlers, stacks, JSON, several processes."""

import io
import json
import logging
import os
import platform
import re
from datetime import UTC, datetime

import pytest
import trio
from worker_helpers import TIMEOUT, next_of

import trioboss
from trioboss import events
from trioboss.actors.reporter import Reporter
from trioboss.cli.logs import LogHandler, set_up_logging
from trioboss.events import JobCompleted, JobFailed


async def test_lines_inside_a_handler_have_its_job(boss, workers):
    worker = await workers.start(app="worker_apps:declared")
    await worker.prints("taking jobs of 1 queue")
    id = await boss.send("declared", 1)

    line = await worker.prints(id, "inside")

    assert re.search(rf"INFO    \S+:{worker.pid} declared {id} #1 inside$", line)


async def test_in_json_they_are_fields(boss, workers):
    worker = await workers.start("--json-logs", app="worker_apps:declared")
    started = json.loads(await worker.prints("WorkerStarted"))
    assert started["queues"] == [{"queue": "declared", "policy": "standard", "concurrency": 1}]
    assert started["database"]["schema"] == "trioboss"
    await worker.prints("taking jobs of 1 queue")
    id = await boss.send("declared", 1)

    line = json.loads(await worker.prints(id, "inside"))

    assert (line["logger"], line["message"], line["queue"]) == ("mine", "inside", "declared")
    assert (line["id"], line["attempt"], line["pid"]) == (str(id), 1, worker.pid)
    assert line["worker"].endswith(f":{worker.pid}")


@pytest.mark.parametrize("kind", ["thread", "asyncio", "batch"])
async def test_lines_in_threads_in_asyncio_and_of_batches_have_it_too(boss, kind, caplog):
    caplog.set_level("INFO")
    caplog.handler.addFilter(trioboss.JobLogFilter())

    def note(job):
        logging.getLogger("mine").info("here")

    async def note_async(job):
        note(job)

    options = {"batch_size": 5} if kind == "batch" else {kind: True}
    await boss.create_queue("q")
    await boss.work("q", note if kind == "thread" else note_async, **options)
    id = await boss.send("q")
    await boss.wait_for("q", id)

    (record,) = [record for record in caplog.records if record.name == "mine"]
    assert (record.queue, record.job_id, record.attempt) == ("q", str(id), 1)
    assert record.worker == f"{platform.node()}:{os.getpid()}"


@pytest.mark.parametrize("format", ["text", "json"])
async def test_a_line_of_a_batch_names_its_first_job_and_how_many_more_there_are(
    boss, workers, tmp_path, format
):
    (tmp_path / "batches.py").write_text(
        "import logging, trioboss\napp = trioboss.App()\n"
        "@app.worker('batches', batch_size=3)\n"
        "async def handle(jobs): logging.getLogger('mine').info('inside')\n"
    )
    await boss.create_queue("batches")
    first, *_ = await boss.insert("batches", [{"data": n} for n in range(3)], return_ids=True)

    flags = ["--json-logs"] if format == "json" else []
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    worker = await workers.start(*flags, app="batches:app", PYTHONPATH=path)
    line = await worker.prints("inside")

    if format == "json":
        fields = json.loads(line)
        assert (fields["id"], fields["batch_size"]) == (str(first), 3)
    else:
        assert f"batches  {first} #1 +2 inside" in line


async def test_a_line_outside_of_handlers_has_empty_fields(caplog):
    caplog.handler.addFilter(trioboss.JobLogFilter())

    logging.getLogger("mine").warning("outside")

    (record,) = caplog.records
    assert (record.queue, record.job_id, record.attempt, record.worker) == ("", "", "", "")


async def test_a_field_that_a_handler_gives_itself_is_left_as_it_is(boss, caplog):
    caplog.handler.addFilter(trioboss.JobLogFilter())

    async def note(job):
        logging.getLogger("mine").warning("here", extra={"queue": "another"})

    await boss.create_queue("q")
    await boss.work("q", note)
    id = await boss.send("q")
    await boss.wait_for("q", id)

    (record,) = [record for record in caplog.records if record.name == "mine"]
    assert (record.queue, record.job_id) == ("another", str(id))


# -- programs with open_boss, whose log has a format of its own


async def test_a_program_logs_the_same_texts_with_worker_queue_id_and_attempt(dsn, caplog):
    caplog.set_level("INFO", "trioboss")

    async def end(job):
        pass

    async with trioboss.open_boss(dsn, migrate=False, worker_name="web-1") as boss:
        await boss.create_queue("q")
        await boss.work("q", end)
        id = await boss.send("q")
        await boss.wait_for("q", id)

    (record,) = [r for r in caplog.records if isinstance(getattr(r, "event", None), JobCompleted)]
    assert re.fullmatch(rf"web-1 q {id} #1 completed, waited .* m?s, ran .* m?s", record.getMessage())
    assert (record.worker, record.queue, record.job_id, record.attempt) == ("web-1", "q", str(id), 1)


async def test_a_program_logs_a_failure_with_its_stack(boss, caplog):
    async def fail(job):
        raise ValueError("it went wrong")

    await boss.create_queue("q", retry_limit=0)
    await boss.work("q", fail)
    async with boss.events(JobFailed) as failures:
        id = await boss.send("q")
        with trio.fail_after(TIMEOUT):
            await next_of(JobFailed, failures)

    assert f"q {id} #1 failed: ValueError: it went wrong, waited " in caplog.text
    assert 'raise ValueError("it went wrong")' in caplog.text
    assert "JobFailed" not in caplog.text
    assert "None" not in caplog.text


async def test_a_cancelled_job_has_a_line(boss, workers):
    worker = await workers.start("-q", "long")
    id = await boss.send("long")
    await worker.prints("began", id)

    await boss.cancel("long", id)

    assert re.search(r"#1 cancelled, ran [\d.]+ (ms|s)$", await worker.prints(id, "cancelled, ran"))


async def test_a_failure_has_the_stack(boss, workers):
    worker = await workers.start("-q", "failing")
    id = await boss.send("failing")
    await worker.prints(id, "failed: ValueError: it went")
    await worker.prints("    ValueError: it went")

    assert worker.matching("    Traceback (most recent call last):")
    assert worker.matching('worker_apps.py", line')


async def test_a_failure_has_the_stack_as_a_field_in_json(boss, workers):
    worker = await workers.start("-q", "failing", "--json-logs")
    id = await boss.send("failing")

    line = json.loads(await worker.prints(id, "JobFailed"))

    assert line["stack"].startswith("Traceback (most recent call last):")
    assert line["stack"].endswith("ValueError: it went\nwrong")
    assert line["error"] == "ValueError: it went wrong"


async def test_the_parent_of_several_processes_logs_in_the_same_format(boss, workers):
    supervisor = await workers.start("-q", "short", "--processes", "2", "--json-logs")
    await supervisor.prints("WorkerStarted", times=2)

    supervisor.signal()

    assert await supervisor.ends() == 0
    lines = [json.loads(line) for line in supervisor.lines]
    (stopping,) = [line for line in lines if line["pid"] == supervisor.pid]
    assert stopping["message"] == "stopping 2 worker processes; Ctrl-C again to stop now"
    assert len({line["pid"] for line in lines}) == 3


# -- the formatters


@pytest.fixture
def log(capsys):
    """Log a record as a worker would; return what it writes."""
    root = logging.getLogger()
    before = root.handlers[:], root.level

    def log(as_json, what, **options):
        set_up_logging("debug", as_json=as_json)
        if isinstance(what, events.Event):
            Reporter("host:1").report(what)
        else:
            logging.getLogger("trioboss").warning(what, **options)
        return capsys.readouterr().err

    yield log
    root.handlers[:], level = before
    root.setLevel(level)


EVENTS = [
    events.JobCancelled("q", "id", None),
    events.JobCancelled("q", "id", 1, 0.5),
    events.JobReleased("q", "id", 1),
    events.JobsRecovered("q", ("id",), "lost"),
    events.LeaseExtended("q", "id", 1, 60.0),
    events.LeaseLostEvent("q", "id", 1, "gone"),
    events.LoopBlocked(1.5),
    events.ListenerDown("gone"),
    events.QueueWarning(None, "kind", "text"),
    events.TickFired("q", "", datetime(2026, 1, 1, tzinfo=UTC), None),
    events.Stopped(),
]
ID = "01920000-0000-7000-8000-000000000001"


def test_times_are_in_human_units(log):
    event = JobCompleted("q", ID, 1, 239.9402, 0.0123)

    assert "#1 completed, waited 4 min, ran 12 ms" in log(False, event)


def test_every_kind_of_event_has_a_line(log):
    for event in EVENTS:
        text = log(False, event)
        assert json.loads(log(True, event))["event"] == type(event).__name__
        assert len(text.splitlines()) == 1


def test_an_error_stays_on_its_line_and_is_readable(log):
    event = JobFailed("q", ID, 2, 1, 1, "ValueError: it\nwent\x1b wrong", "retry")

    (line,) = log(False, event).splitlines()
    assert "failed, will be retried: ValueError: it went ? wrong" in line or "it went? wrong" in line


def test_a_failure_that_blocks_its_key_tells_so(log):
    event = JobFailed("q", ID, 2, 1, 1, "ValueError: no", "failed", blocked_key="k")

    assert "s; it blocks key 'k' until it is retried or deleted\n" in log(False, event)
    assert json.loads(log(True, event))["blocked_key"] == "k"


def test_a_stack_follows_the_line_and_is_a_field_in_json(log):
    try:
        raise ValueError("it went wrong")
    except ValueError:
        text = log(False, "it failed", exc_info=True)
        line = json.loads(log(True, "it failed", exc_info=True))

    first, *stack = text.splitlines()
    assert first.endswith("it failed")
    assert stack[0] == "    Traceback (most recent call last):"
    assert stack[-1] == "    ValueError: it went wrong"
    assert line["stack"].endswith("ValueError: it went wrong")
    assert line["level"] == "warning"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_stack_controls_no_terminal(log, as_json):
    try:
        raise ValueError("ring\a and \x1b]0;title\a\x1b[2J\n\x1b[31mred")
    except ValueError as error:
        event = JobFailed("q", ID, 1, 1, 1, "ValueError", "failed", exception=error)
        texts = [log(as_json, event), log(as_json, "it failed", exc_info=True)]

    for text in texts:
        shown = json.loads(text)["stack"] if as_json else text
        assert "red" in shown
        assert all(line.isprintable() for line in shown.splitlines())


def test_a_log_that_cannot_be_written_is_ignored(monkeypatch, log):
    class Full:
        def write(self, text):
            raise OSError(28, "No space left on device")

        def isatty(self):
            return False

    monkeypatch.setattr("sys.stderr", Full())

    log(False, "x")


def test_log_lines_come_above_the_line_that_is_kept_up_to_date():
    stream = io.StringIO()
    handler = LogHandler(stream)
    handler.show("waiting")
    handler.emit(logging.makeLogRecord({"msg": "news"}))
    handler.show("")
    handler.emit(logging.makeLogRecord({"msg": "end"}))

    clear = "\r\x1b[2K"
    assert stream.getvalue() == f"{clear}waiting{clear}news\nwaiting{clear}end\n"
