"""Probes, metrics and logs of a worker process, without payloads and passwords."""

import json
import re

import psycopg
import pytest
import trio
import trio.testing
from psycopg.conninfo import make_conninfo
from worker_helpers import TIMEOUT, closed

from trioboss.cli.health import Metrics
from trioboss.events import JobCompleted, Wip

PASSWORD, PAYLOAD = "pw-canary-7341", "payload-canary-5128"


async def get(port, path):
    """The status and the body of an HTTP response."""
    with trio.fail_after(TIMEOUT):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            answer = b"".join([chunk async for chunk in stream])
    head, _, body = answer.decode().partition("\r\n\r\n")
    return int(head.split()[1]), body


@pytest.fixture
async def served(boss, workers):
    """A worker with a health port that has completed one job and failed another; and its port."""
    worker = await workers.start("-q", "short", "-q", "failing", "--health", "0")
    line = await worker.prints("/metrics at http://")
    good, bad = await boss.send("short", "x"), await boss.send("failing")
    await worker.prints(good, "completed")
    await worker.prints(bad, "failed")
    return worker, int(re.search(r":(\d+)", line.split("http://")[1])[1])


async def test_probes_and_metrics(served):
    _, port = served

    assert await get(port, "/live") == (200, "alive\n")
    assert await get(port, "/ready") == (200, "ready\n")
    assert (await get(port, "/elsewhere"))[0] == 404
    status, text = await get(port, "/metrics")
    assert status == 200
    assert 'trioboss_completed_total{queue="short"} 1' in text
    assert 'trioboss_failed_total{queue="failing"} 1' in text
    assert 'trioboss_run_seconds_count{queue="short"} 1' in text
    assert "trioboss_listening 1" in text
    assert "trioboss_polling 0" in text


async def test_a_stopping_worker_is_alive_and_not_ready(boss, workers):
    worker = await workers.start("-q", "long", "--health", "0", "--grace", "3600")
    port = int(re.search(r":(\d+)", (await worker.prints("/metrics at http://")).split("http://")[1])[1])
    id = await boss.send("long")
    await worker.prints("began", id)

    worker.signal()

    with trio.fail_after(TIMEOUT):
        while await get(port, "/ready") != (503, "stopping\n"):  # noqa: ASYNC110 (a signal has no event)
            await trio.sleep(0.01)
    assert await get(port, "/live") == (200, "alive\n")
    assert 'trioboss_running{queue="long"} 1' in (await get(port, "/metrics"))[1]
    worker.signal()
    assert await worker.ends() == 0


async def test_a_starting_worker_is_not_ready(boss):
    started = trio.Event()
    metrics = Metrics(boss, started)

    assert metrics.objection() == "starting"
    started.set()
    assert metrics.objection() is None


async def test_two_workers_on_one_queue_are_one_series(boss):
    await boss.work("long", trio.sleep)
    await boss.work("long", trio.sleep)

    lines = [line.partition(" ")[0] for line in await Metrics(boss).lines() if not line.startswith("#")]

    assert len(lines) == len(set(lines))
    assert 'trioboss_completed_total{queue="long"}' in lines
    assert 'trioboss_running{queue="long"}' in lines


async def test_metrics_need_no_timer(boss, nursery):
    nursery.start_soon(Metrics(boss).run)
    await trio.testing.wait_all_tasks_blocked()

    assert boss._runtime.reporter.has_reader(JobCompleted)
    assert not boss._runtime.reporter.has_reader(Wip)


async def test_metrics_have_the_size_and_age_of_queues(boss, dsn):
    await boss.work("lo*", trio.sleep)
    await boss.pause("long")
    await boss.insert("long", [{}, {"start_after": 3600}])
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "update trioboss.live_job set start_after = now() - interval '90 s' where start_after < now()"
        )
    await boss.send("short")

    text = "\n".join(await Metrics(boss).lines())

    assert 'trioboss_queue_size{queue="long"} 2' in text
    assert re.search(r'trioboss_oldest_age_seconds\{queue="long"\} 9\d\.', text)
    # Of a queue without a worker, too; a series that is 0 can be told from one that is missing.
    assert 'trioboss_queue_size{queue="short"} 1' in text
    assert 'trioboss_unserved_jobs{queue="short"} 1' in text
    assert 'trioboss_unserved_jobs{queue="long"} 0' in text
    assert 'trioboss_queue_size{queue="graves"} 0' in text


async def test_the_oldest_age_leaves_out_jobs_behind_a_blocked_key(boss, dsn):
    await boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
    for _ in range(2):
        await boss.send("orders", singleton_key="k")
    await boss.fail("orders", await boss.fetch("orders"))
    with psycopg.connect(dsn) as connection:
        connection.execute("update trioboss.live_job set start_after = now() - interval '90 s'")

    text = "\n".join(await Metrics(boss).lines())

    assert 'trioboss_queue_size{queue="orders"} 1' in text
    assert 'trioboss_oldest_age_seconds{queue="orders"} 0' in text
    assert 'trioboss_blocked_keys{queue="orders"} 1' in text
    assert 'trioboss_blocked_keys{queue="short"}' not in text


async def test_metrics_without_a_database_have_the_counters(boss, dsn, server_dsn):
    with closed(server_dsn, dsn), trio.fail_after(TIMEOUT):
        lines = await Metrics(boss).lines()

    assert "# TYPE trioboss_running gauge" in lines


async def test_metrics_are_prometheus_text(served):
    _, text = await get(served[1], "/metrics")

    for line in text.splitlines():
        assert re.fullmatch(
            r'# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+', line
        )


async def test_the_log_has_one_line_for_each_job(served):
    worker, _ = served
    time = r"[\d.]+ (ms|s|min)"

    (line,) = worker.matching(" short ", "completed")
    assert re.search(rf"INFO    \S+:{worker.pid} short    \S+ #1 completed, waited {time}, ran {time}$", line)
    (line,) = worker.matching(" failing ", "#1")
    assert re.search(
        rf"WARNING \S+:{worker.pid} failing  \S+ #1 failed: ValueError: it went wrong, waited {time}", line
    )


async def test_no_payload_and_no_password_is_logged(boss, workers, dsn):
    with_password = make_conninfo(dsn, password=PASSWORD)
    worker = await workers.start("--json-logs", "--log-level", "debug", TRIOBOSS_DSN=with_password)
    good = await boss.send("short", {"secret": PAYLOAD})
    bad = await boss.send("failing", {"secret": PAYLOAD})
    slow = await boss.send("blocking", {"secret": PAYLOAD})
    await worker.prints("JobCompleted", good)
    await worker.prints("JobFailed", bad)
    await worker.prints("JobCompleted", slow)
    worker.signal()
    await worker.ends()

    assert not worker.matching(PAYLOAD)
    assert not worker.matching(PASSWORD)
    assert worker.matching("LoopBlocked", "seconds")
    logged = [json.loads(line) for line in worker.lines if line.startswith("{")]
    (event,) = [line for line in logged if line.get("id") == str(good) and line["event"] == "JobCompleted"]
    assert event.keys() == {
        *("time", "level", "logger", "worker", "pid", "message"),
        *("event", "queue", "id", "attempt", "waited", "ran"),
    }
    assert (event["pid"], event["attempt"]) == (worker.pid, 1)


async def test_a_database_that_cannot_be_reached_is_named_without_its_password(workers):
    worker = await workers.start("--wait", "0", TRIOBOSS_DSN=f"postgresql://me:{PASSWORD}@127.0.0.1:9/x")

    assert await worker.ends() == 1
    assert worker.lines
    assert not worker.matching(PASSWORD)
    assert not worker.matching("Traceback")


async def test_a_health_port_that_is_taken_is_a_mistake_too(workers, boss):
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        worker = await workers.start("--health", str(listener.socket.getsockname()[1]))

        assert await worker.ends() == 2
    assert "cannot listen on" in worker.lines[-2]  # the last one is the page of the documentation
    assert not worker.matching("Traceback")


async def test_a_presence_grace_that_is_too_short_is_a_mistake_too(workers, boss):
    worker = await workers.start("--presence-grace", "1")

    assert await worker.ends() == 2
    message, page = worker.lines
    assert "presence_grace: 1.0" in message
    assert page.startswith("  documentation: https://")


async def test_a_dead_letter_queue_that_is_missing_is_created_with_the_queue_that_names_it(workers, boss):
    await boss.delete_queue("graves")
    worker = await workers.start()

    await worker.prints("create queue 'graves'")
    await worker.prints("create queue 'poison': dead_letter='graves'")
    assert await boss.get_queue("graves") is not None
