"""Dead letters are sent again from the dashboard: all, those of a filter, or a selection."""

import time
from uuid import UUID

import psycopg
from forms import act, audit, hidden_fields

from trioboss.dashboard import actions


async def test_dead_letters_are_sent_again_to_where_they_came_from(acting, sync_boss, monkeypatch):
    monkeypatch.setattr(actions, "_CHUNK", 2)
    sync_boss.create_queue("dead")
    for queue in ("a", "b"):
        sync_boss.create_queue(queue, dead_letter="dead", retry_limit=0)
        sync_boss.insert(queue, [{"data": n} for n in range(3)])
        sync_boss.fail(queue, sync_boss.fetch(queue, batch_size=3), ValueError(queue))
    page = (await acting.get("/queues/dead/redrive")).text
    assert "Redrive 6 dead letters" in page
    page = (await acting.get("/queues/dead/redrive?source=a")).text
    assert "Redrive 3 dead letters" in page
    response = await act(acting, "redrive", **hidden_fields(page))
    while response.status_code == 200:
        response = await act(acting, "redrive", **hidden_fields(response.text))

    assert [job.data for job in sync_boss.find_jobs("a", state="created")] == [0, 1, 2]
    assert len(sync_boss.find_jobs("dead")) == 3
    assert audit(sync_boss) == [("local", "redrive", "dead", 3, 3)]


def fail_three(boss):
    """Three dead letters of one queue; their ids."""
    boss.create_queue("dead")
    boss.create_queue("a", dead_letter="dead", retry_limit=0)
    boss.insert("a", [{"data": n} for n in range(3)])
    boss.fail("a", boss.fetch("a", batch_size=3), ValueError("a"))
    return [job.id for job in boss.find_jobs("dead")]


async def test_a_selection_of_dead_letters_is_sent_again(acting, sync_boss):
    first, second, third = fail_three(sync_boss)
    assert 'value="redrive"' in (await acting.get("/queues/dead/jobs")).text
    page = (await acting.get(f"/queues/dead/confirm?selected=1&action=redrive&id={first}&id={third}")).text
    await act(acting, "jobs", queue="dead", action="redrive", id=[str(first), str(third)])

    assert "Redrive 2 jobs?" in page
    assert [job.id for job in sync_boss.find_jobs("dead")] == [second]
    assert len(sync_boss.find_jobs("a", state="created")) == 2
    assert audit(sync_boss) == [("local", "redrive", "dead", 2, 2)]


async def test_a_dead_letter_is_sent_again_from_its_page(acting, sync_boss):
    first, *others = fail_three(sync_boss)
    assert "Redrive" in (await acting.get(f"/queues/dead/jobs/{first}")).text
    await act(acting, "jobs", queue="dead", action="redrive", id=str(first))

    assert [job.id for job in sync_boss.find_jobs("dead")] == others


async def test_all_dead_letters_that_pass_a_filter_are_sent_again(acting, sync_boss, monkeypatch):
    monkeypatch.setattr(actions, "_CHUNK", 2)
    fail_three(sync_boss)
    page = (await acting.get("/queues/dead/confirm?action=redrive&since=1h")).text
    response = await act(acting, "jobs", **hidden_fields(page))
    while response.status_code == 200:
        response = await act(acting, "jobs", **hidden_fields(response.text))

    assert sync_boss.find_jobs("dead") == []
    assert audit(sync_boss) == [("local", "redrive", "dead", 3, 3)]


async def test_jobs_that_are_no_dead_letters_are_not_offered_to_be_sent_again(acting, filled):
    assert 'value="redrive"' not in (await acting.get("/queues/q/jobs")).text


async def test_dead_letters_that_would_stay_are_not_counted(acting, sync_boss):
    fail_three(sync_boss)
    sync_boss.delete_queue("a")
    page = (await acting.get("/queues/dead/redrive")).text

    assert "Redrive 0 dead letters" in page
    assert "stays here" in page
    assert '<button type="submit" class="primary">' not in page


async def test_dead_letters_that_come_later_stay_by_the_clock_of_the_database(acting, sync_boss, monkeypatch):
    """The clock of the dashboard's host may be wrong: ids of dead letters are made by the database."""
    sync_boss.create_queue("dead")
    sync_boss.create_queue("q", dead_letter="dead", retry_limit=0)
    sync_boss.insert("q", [{"data": 1}])
    sync_boss.fail("q", sync_boss.fetch("q"), ValueError("first"))
    late = time.time_ns() + 3600 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: late)
    page = (await acting.get("/queues/dead/redrive")).text
    last = UUID(hidden_fields(page)["last"])
    with psycopg.connect(sync_boss.dsn) as connection:
        ((now, made),) = connection.execute(
            "select clock_timestamp(), max(id::text) from trioboss.live_job"
        ).fetchall()

    assert UUID(made) <= last
    assert last.int >> 80 <= int(now.timestamp() * 1000)


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
