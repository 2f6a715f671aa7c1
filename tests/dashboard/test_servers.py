"""The dashboard under real servers (hypercorn on trio, uvicorn on asyncio), and mounted in other applications."""

import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trio

import trioboss
from benchmarks.dashboard import time_until_seen
from trioboss.dashboard import make_app
from trioboss.dashboard.serving import serve_dashboard

SNIPPETS = Path(__file__).parent.parent.parent / "docs" / "snippets" / "dashboard"
DJANGO = (SNIPPETS / "mounted_django.py").read_text("utf-8")
PLAIN = """
import os
from trioboss.dashboard import make_app
application = make_app(os.environ["TRIOBOSS_DSN"])
"""


@pytest.fixture
def queue(sync_boss):
    sync_boss.create_queue("q")
    return sync_boss


def find_url(stream):
    """The address in the first line of a program's output that has one. The program chooses its port itself."""
    for line in stream:
        if found := re.search(r"http://[0-9.]+:\d+", line):
            return f"{found[0]}/"
    raise AssertionError("the program ended, and served nothing")


def get(url, **options):
    return httpx.get(url, timeout=60, trust_env=False, **options)


@contextmanager
def watching(url):
    """A live page that is open; its first message that has something in it."""
    given = {"headers": {"Accept": "text/event-stream"}, "timeout": 60, "trust_env": False}
    with httpx.stream("GET", url, **given) as stream:
        lines = stream.iter_lines()
        yield next(each for each in lines if each.startswith("data:"))


def read_stream(url):
    with watching(url) as message:
        return message


@pytest.mark.parametrize(("program", "path"), [(PLAIN, ""), (DJANGO, "jobs")], ids=["alone", "django"])
def test_it_is_served_by_uvicorn(tmp_path: Path, queue, program, path):
    (tmp_path / "served.py").write_text(program)
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "served:application",
        "--port",
        "0",
        "--no-access-log",
    ]
    environment = {**os.environ, "TRIOBOSS_DSN": queue.dsn}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        root = find_url(process.stderr)
        assert f'href="/{path}{"/" if path else ""}queues/q"' in get(root + path, follow_redirects=True).text
        assert "live-queues" in read_stream(f"{root}{path}/" if path else root)
        if path:
            assert get(root).text == "a Django page"
        # uvicorn waits for all connections: a page that somebody has open must not keep it from stopping.
        with watching(f"{root}{path}/" if path else root):
            process.terminate()
            process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in (0, -15)


async def test_it_is_served_by_hypercorn_on_trio(queue):
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            url = await nursery.start(serve_dashboard, make_app(queue.dsn), "127.0.0.1", 0)
            page = await trio.to_thread.run_sync(get, url)
            assert 'href="/queues/q"' in page.text
            assert "live-queues" in await trio.to_thread.run_sync(read_stream, url)
            nursery.cancel_scope.cancel()


async def test_the_benchmark_measures_how_long_a_change_takes_to_be_seen(queue):
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            url = await nursery.start(serve_dashboard, make_app(queue.dsn), "127.0.0.1", 0)
            (delay,) = await trio.to_thread.run_sync(time_until_seen, url, queue.dsn, 1)
            nursery.cancel_scope.cancel()

    assert delay > 0


async def test_a_port_that_is_taken_is_explained(queue):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(trioboss.UsageError, match="cannot listen on"):
            await serve_dashboard(make_app(queue.dsn), "127.0.0.1", taken.getsockname()[1])


# -- the command line


def run(*arguments, dsn, **environment):
    command = [sys.executable, "-m", "trioboss", *arguments]
    given = {**os.environ, "TRIOBOSS_DSN": dsn, **environment}
    return subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("arguments", "environment", "can_act"),
    [
        ([], {}, False),
        (["--host", "0.0.0.0"], {"TRIOBOSS_DASHBOARD_PASSWORD": "sesame"}, False),
        (["--act"], {}, True),
        (["--act-dsn", "{dsn}"], {}, True),
        (["--dsn", "{reader}", "--act-dsn", "{dsn}"], {}, True),
    ],
    ids=["reads", "password", "act", "act-dsn", "reader and act-dsn"],
)
def test_the_command_serves_it(queue, reader_dsn, arguments, environment, can_act):
    given = [each.format(dsn=queue.dsn, reader=reader_dsn) for each in arguments]
    process = run("dashboard", "--port", "0", *given, dsn=queue.dsn, **environment)
    try:
        first = process.stdout.readline()
        url = first.split()[4].replace("0.0.0.0", "127.0.0.1")
        auth = ("operator", "sesame") if environment else None
        if auth:
            assert get(url).status_code == 401
        page = get(f"{url}queues/q", auth=auth)
        assert page.status_code == 200
        assert ("Pause queue" in page.text) == can_act
        assert ("(it only reads)" in first) != can_act
        response = httpx.post(
            f"{url}act/queue",
            data={"queue": "q", "action": "pause"},
            headers={"Origin": url.rstrip("/")},
            auth=auth,
            timeout=60,
            trust_env=False,
        )
        assert response.status_code == (303 if can_act else 403)
        assert queue.get_queue("q").paused == can_act
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "command", [["dashboard", "--port", "0"], ["demo", "--dashboard", "0"]], ids=lambda each: each[0]
)
def test_a_signal_ends_it_cleanly_while_somebody_watches(queue, command, number):
    process = run(*command, dsn=queue.dsn)
    url = next(each for each in process.stdout if "dashboard is at" in each).split()[4]
    with watching(url):
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (0, "")


def test_the_command_is_not_open_to_other_machines_without_a_password(queue):
    process = run("dashboard", "--host", "0.0.0.0", "--port", "0", dsn=queue.dsn)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 2
    assert "TRIOBOSS_DASHBOARD_PASSWORD" in errors


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("can_act", [True, False])
def test_a_worker_serves_it_beside_its_jobs(tmp_path, queue, monkeypatch, can_act, processes):
    """It acts only where that was asked for; fields are hidden with one process and with several."""
    (tmp_path / "some_app.py").write_text(
        "import trioboss\napp = trioboss.App()\n\n@app.worker('q')\nasync def work(job): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    id = queue.send("q", {"password": "sesame"}, start_after=3600)
    options = ["--dashboard-act"] if can_act else []
    options += ["--dashboard", "0", "--redact", "password", "--processes", processes]
    process = run("worker", "some_app:app", "--grace", "1", *options, dsn=queue.dsn)
    try:
        url = find_url(process.stderr)
        assert get(f"{url}workers").status_code == 200
        assert ("Pause queue" in get(f"{url}queues/q").text) == can_act
        assert "password" in (page := get(f"{url}queues/q/jobs/{id}").text)
        assert "sesame" not in page
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_options_of_a_dashboard_that_is_not_served_are_refused(tmp_path, queue, monkeypatch):
    (tmp_path / "some_app.py").write_text(
        "import trioboss\napp = trioboss.App()\n\n@app.worker('q')\nasync def work(job): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    for option in (["--dashboard-act"], ["--redact", "password"]):
        process = run("worker", "some_app:app", *option, dsn=queue.dsn)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 2
        assert f"{option[0][2:]}: is for a dashboard: add --dashboard" in errors


def test_the_demo_has_a_dashboard_that_only_reads(queue):
    process = run("demo", "--dashboard", "0", "--no-act", dsn=queue.dsn)
    try:
        url = next(each for each in process.stdout if "dashboard is at" in each).split()[4]
        assert "read only" in get(url).text
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_the_demo_runs_jobs_beside_the_dashboard(queue):
    process = run("demo", "--dashboard", "0", dsn=queue.dsn)
    try:
        url = next(each for each in process.stdout if "dashboard is at" in each).split()[4]
        deadline = time.monotonic() + 60
        while "1 blocked key" not in (text := get(url).text):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert "demo/orders" in text
        assert "every-minute" in get(f"{url}schedules").text
        assert "Redrive" in get(f"{url}queues/demo~dead").text
    finally:
        process.terminate()
        process.communicate(timeout=60)


async def test_a_request_of_a_bare_nginx_is_refused(dsn, filled):
    """It names itself as the Host, adds no header that says it has forwarded the request, and speaks HTTP/1.0."""
    app = make_app(dsn)
    answers = {}
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_dashboard, app, "127.0.0.1", 0)
        port = int(url.rstrip("/").rpartition(":")[2])
        for version in ("1.0", "1.1"):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            head = f"GET / HTTP/{version}\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
            await stream.send_all(head.encode())
            answers[version] = (await stream.receive_some(1000)).split()[1]
            await stream.aclose()
        nursery.cancel_scope.cancel()
    app._close()

    assert answers == {"1.0": b"403", "1.1": b"200"}


async def test_it_is_mounted_in_another_application(dsn, filled, monkeypatch):
    """By the program that the documentation shows."""
    monkeypatch.setenv("TRIOBOSS_DSN", dsn)
    monkeypatch.setenv("DASHBOARD_PASSWORD", "sesame")
    program = runpy.run_path(str(SNIPPETS / "mounted.py"))
    transport = httpx.ASGITransport(app=program["app"], client=("192.0.2.7", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.get("/ops/jobs/")).status_code == 401
        client.auth = ("ann", "sesame")
        text = (await client.get("/ops/jobs/")).text
        assert 'href="/ops/jobs/queues/q"' in text
        assert (await client.get("/ops/jobs/queues/q")).status_code == 200
        assert (await client.get("/ops/jobs/static/dashboard.css")).status_code == 200
    program["dashboard"]._close()


@pytest.mark.parametrize("path", ["/jobs", ""])
async def test_actions_lead_back_below_the_prefix(open_dashboard, dsn, filled, path):
    job = filled.find_jobs("q", state="failed")[0]
    async with open_dashboard(prefix="/jobs", act_dsn=dsn) as client:
        client.headers["Origin"] = "http://localhost"
        page = (await client.get(f"{path}/queues/q/confirm?action=retry&id={job.id}")).text
        assert 'action="/jobs/act/jobs"' in page
        assert 'href="/jobs/queues/q/jobs">Back' in page
        form = {"queue": "q", "action": "retry", "id": str(job.id), "back": f"/queues/q/jobs/{job.id}"}
        response = await client.post(f"{path}/act/jobs", data=form)

    assert response.headers["location"] == f"/jobs/queues/q/jobs/{job.id}?done=retry%3A1%3A1"


@pytest.mark.parametrize("path", ["/jobs/", "/jobs", "/"])
async def test_a_prefix_is_in_all_links_whether_the_server_takes_it_off_or_not(open_dashboard, filled, path):
    async with open_dashboard(prefix="/jobs/") as client:
        text = (await client.get(path)).text

    assert 'href="/jobs/queues/q"' in text
    assert 'src="/jobs/static/dashboard.js"' in text
