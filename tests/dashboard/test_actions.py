"""Actions: what the buttons do, to whom, how many, and the row that they leave."""

import re

import psycopg
import pytest

from trioboss.dashboard import actions


async def act(client, path, **fields):
    response = await client.post(f"/act/{path}", data=fields)
    assert response.status_code in (200, 303), response.text
    return response


def audit(boss):
    with psycopg.connect(boss.dsn) as connection:
        rows = "select who, action, queue, requested, affected from trioboss.audit order by id"
        return connection.execute(rows).fetchall()


def states(boss, queue="q"):
    return sorted(str(job.state) for job in boss.find_jobs(queue))


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("retry", "failed", "retry"),
        ("cancel", "active", "cancelled"),
        ("cancel", "created", "cancelled"),
        ("resume", "cancelled", "retry"),
    ],
)
async def test_a_job_is_changed_and_the_change_is_written_down(acting, filled, action, before, after):
    job = filled.find_jobs("q", state=before)[0]
    response = await act(
        acting, "jobs", queue="q", action=action, id=str(job.id), back=f"/queues/q/jobs/{job.id}"
    )

    assert response.headers["location"] == f"/queues/q/jobs/{job.id}?done={action}%3A1%3A1"
    assert filled.get_job_by_id("q", job.id).state == after
    assert audit(filled) == [("local", action, "q", 1, 1)]


async def test_an_action_that_finds_nothing_to_change_says_so(acting, filled):
    job = filled.find_jobs("q", state="completed")[0]
    response = await act(acting, "jobs", queue="q", action="retry", id=str(job.id))

    assert response.headers["location"].endswith("done=retry%3A0%3A1")
    assert audit(filled) == [("local", "retry", "q", 1, 0)]


async def test_a_deferred_job_runs_now(acting, filled):
    filled.fetch("q")  # the one that is ready
    (job,) = filled.find_jobs("q", state="created")
    await act(acting, "jobs", queue="q", action="run-now", id=str(job.id))

    assert [each.id for each in filled.fetch("q")] == [job.id]


@pytest.mark.parametrize("policy", ["standard", "singleton"])
async def test_a_priority_is_changed(acting, sync_boss, policy):
    sync_boss.create_queue("q", policy=policy)
    first, second = (sync_boss.send("q", singleton_key=key) for key in "ab")
    await act(acting, "jobs", queue="q", action="priority", id=str(second), priority="7")
    (job,) = sync_boss.fetch("q")

    assert (job.id, job.priority) == (second, 7)
    assert first != second


async def test_a_key_is_unblocked(acting, sync_boss):
    sync_boss.create_queue("q", policy="key_strict_fifo", retry_limit=0)
    first, second = (sync_boss.send("q", singleton_key="k") for _ in range(2))
    sync_boss.fail("q", sync_boss.fetch("q"))
    page = (await acting.get("/queues/q/key?key=k")).text
    assert f"…{str(first)[-12:]}" in page
    assert "1 jobs wait behind it" in page
    await act(acting, "jobs", queue="q", action="delete", confirm="q", id=str(first))

    assert [job.id for job in sync_boss.fetch("q")] == [second]


async def test_nothing_is_deleted_without_the_name_of_the_queue(acting, filled):
    before = states(filled)
    job = filled.find_jobs("q", state="failed")[0]
    for typed in ("", "Q", "q "):
        response = await acting.post(
            "/act/jobs", data={"queue": "q", "action": "delete", "id": job.id, "confirm": typed}
        )
        assert response.status_code == 400

    assert states(filled) == before
    assert audit(filled) == []


# -- everything that a filter matches


def hidden_fields(text):
    form = re.search(r'<form class="card ask".*?</form>', text, re.DOTALL)[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))


async def test_a_filter_is_counted_first_and_jobs_that_come_later_are_left_alone(acting, sync_boss):
    sync_boss.create_queue("q", retry_limit=0)
    sync_boss.insert("q", [{}] * 5)
    sync_boss.fail("q", sync_boss.fetch("q", batch_size=3), ValueError("a"))
    sync_boss.fail("q", sync_boss.fetch("q", batch_size=2), KeyError("b"))
    page = (await acting.get("/queues/q/confirm?action=retry&state=failed&error=ValueError")).text
    assert "Retry 3 jobs?" in page
    sync_boss.insert("q", [{}])
    sync_boss.fail("q", sync_boss.fetch("q"), ValueError("later"))
    await act(acting, "jobs", **hidden_fields(page))

    assert states(sync_boss) == ["failed"] * 3 + ["retry"] * 3
    assert audit(sync_boss) == [("local", "retry", "q", 3, 3)]


async def test_many_jobs_are_changed_in_chunks_with_one_row_of_the_audit(acting, sync_boss, monkeypatch):
    monkeypatch.setattr(actions, "_CHUNK", 10)
    sync_boss.create_queue("q")
    sync_boss.insert("q", [{}] * 34)
    page = (await acting.get("/queues/q/confirm?action=cancel&state=queued")).text
    response = await act(acting, "jobs", **hidden_fields(page))
    pages = 1
    while response.status_code == 200:
        assert "data-continue" in response.text
        response = await act(acting, "jobs", **hidden_fields(response.text))
        pages += 1

    assert pages == 4
    assert states(sync_boss) == ["cancelled"] * 34
    assert audit(sync_boss) == [("local", "cancel", "q", 34, 34)]


async def test_a_form_does_not_lead_elsewhere(acting, filled):
    job = filled.find_jobs("q", state="failed")[0]
    for back in ("//evil.example", "https://evil.example", "/\\evil.example"):
        response = await act(acting, "jobs", queue="q", action="retry", id=str(job.id), back=back)
        assert response.headers["location"].startswith("/queues/q/jobs?done=")


# -- queues, schedules, sending, dead letters


async def test_a_queue_is_paused_and_resumed(acting, filled):
    await act(acting, "queue", queue="q", action="pause")
    assert filled.get_queue("q").paused
    await act(acting, "queue", queue="q", action="resume-queue")
    assert not filled.get_queue("q").paused
    assert [row[1] for row in audit(filled)] == ["pause", "resume-queue"]


async def test_a_schedule_is_paused_resumed_and_run_now(acting, filled, boss):
    await boss.schedule("q", "0 0 1 1 *", {"from": "cron"}, key="k", priority=4)
    await act(acting, "schedule", queue="q", key="k", action="pause-schedule")
    assert "paused" in (await acting.get("/schedules")).text
    _, read = await boss._execute(boss._store.maintenance.read_schedules())
    assert read == []
    await act(acting, "schedule", queue="q", key="k", action="resume-schedule")
    _, read = await boss._execute(boss._store.maintenance.read_schedules())
    assert len(read) == 1
    response = await act(acting, "schedule", queue="q", key="k", action="run-schedule")
    job = filled.get_job_by_id("q", response.headers["location"].split("/")[-1])

    assert (job.data, job.priority) == ({"from": "cron"}, 4)


async def test_a_job_is_sent(acting, sync_boss):
    sync_boss.create_queue("a/b", policy="key_strict_fifo")
    fields = {"queue": "a/b", "data": '{"n": 12345678901234567890}', "priority": "3", "start_after": "60"}
    refused = await act(acting, "send", **fields)
    assert "require a singleton_key" in refused.text
    response = await act(acting, "send", **fields, singleton_key="k")
    job = sync_boss.get_job_by_id("a/b", response.headers["location"].split("/")[-1])

    assert (job.data, job.priority, job.singleton_key) == ({"n": 12345678901234567890}, 3, "k")
    assert "this is not JSON" in (await act(acting, "send", queue="a/b", data="{")).text


async def test_dead_letters_are_sent_again_to_where_they_came_from(acting, sync_boss, monkeypatch):
    monkeypatch.setattr(actions, "_CHUNK", 2)
    sync_boss.create_queue("dead")
    for queue in ("a", "b"):
        sync_boss.create_queue(queue, dead_letter="dead", retry_limit=0)
        sync_boss.insert(queue, [{"data": n} for n in range(3)])
        sync_boss.fail(queue, sync_boss.fetch(queue, batch_size=3), ValueError(queue))
    page = (await acting.get("/queues/dead/redrive")).text
    assert "Redrive 6 dead letters" in page
    response = await act(acting, "redrive", **hidden_fields(page), source="a")
    while response.status_code == 200:
        response = await act(acting, "redrive", **hidden_fields(response.text))

    assert [job.data for job in sync_boss.find_jobs("a", state="created")] == [0, 1, 2]
    assert len(sync_boss.find_jobs("dead")) == 3
    assert audit(sync_boss) == [("local", "redrive", "dead", 3, 3)]


async def test_dead_letters_that_the_policy_refuses_stay(acting, sync_boss):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("a", policy="short", dead_letter="dead", retry_limit=0)
    for _ in range(2):
        sync_boss.send("a")
        sync_boss.fail("a", sync_boss.fetch("a"))
    page = (await acting.get("/queues/dead/redrive")).text
    await act(acting, "redrive", **hidden_fields(page))

    assert len(sync_boss.find_jobs("a", state="created")) == 1
    assert len(sync_boss.find_jobs("dead")) == 1


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("jobs", {"action": "explode", "id": "01920000-0000-7000-8000-000000000001"}),
        ("jobs", {"action": "retry", "id": "x"}),
        ("jobs", {"action": "retry"}),
        ("jobs", {"action": "priority", "priority": "9" * 20, "id": "01920000-0000-7000-8000-000000000001"}),
        ("queue", {"action": "explode"}),
        ("schedule", {"action": "explode"}),
        ("redrive", {"last": "x"}),
    ],
)
async def test_a_wrong_action_is_refused_and_changes_nothing(acting, filled, path, fields):
    before = states(filled)
    response = await acting.post(f"/act/{path}", data={"queue": "q", **fields})

    assert response.status_code == 400
    assert states(filled) == before
    assert audit(filled) == []
