"""Actions: what the buttons do, to whom, how many, and the row that they leave."""

import re

import psycopg
import pytest
import trio
from forms import act, audit, hidden_fields

from trioboss.dashboard import actions
from trioboss.dashboard.filters import LAST_ID


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
    assert "1 job waits behind it" in page
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
        assert "to delete, type the name of the queue: q" in response.text
        assert hidden_fields(response.text)["id"] == str(job.id)  # the form is there again

    assert states(filled) == before
    assert audit(filled) == []


# -- the audit


async def test_an_action_is_not_added_to_the_row_of_another(open_dashboard, filled, dsn):
    """The id of the row comes from a form: with that of another person an action would leave no trace."""
    headers = {"Origin": "http://localhost"}
    async with open_dashboard(act_dsn=dsn, authorize=lambda request: request.headers["x-user"]) as client:
        client.headers.update(headers)
        await client.post("/act/queue", data={"queue": "q", "action": "pause"}, headers={"X-User": "ann"})
        with psycopg.connect(dsn) as connection:
            ((row,),) = connection.execute("select id from trioboss.audit").fetchall()
        fields = {
            "queue": "q",
            "action": "cancel",
            "counted_on": "2100-01-01T00:00+00:00",
            "committed": "9:9:",
        }
        fields["audit"] = str(row)
        responses = [
            await client.post("/act/jobs", data=fields, headers={"X-User": "bob"}),
            await client.post("/act/jobs", data=fields, headers={"X-User": "ann"}),  # another action of hers
            await client.post(
                "/act/redrive",
                data=fields,
                headers={"X-User": "ann"},
            ),
            await client.post("/act/jobs", data=fields | {"audit": str(LAST_ID)}, headers={"X-User": "bob"}),
        ]

    assert {response.status_code for response in responses} == {400}
    assert audit(filled) == [("ann", "pause", "q", 1, 1)]
    assert states(filled).count("cancelled") == 1  # as before


async def test_chunks_of_an_action_are_added_to_the_row_of_the_same_person_and_filter_only(
    open_dashboard, sync_boss, dsn, monkeypatch
):
    monkeypatch.setattr(actions, "_CHUNK", 2)
    sync_boss.create_queue("q")
    sync_boss.insert("q", [{"priority": n % 2} for n in range(6)])
    async with open_dashboard(act_dsn=dsn, authorize=lambda request: request.headers["x-user"]) as client:
        client.headers.update({"Origin": "http://localhost", "X-User": "ann"})
        page = (await client.get("/queues/q/confirm?action=cancel")).text
        page = (await act(client, "jobs", **hidden_fields(page))).text
        fields = hidden_fields(page)
        refused = [
            await client.post("/act/jobs", data=fields, headers={"X-User": "bob"}),
            await client.post("/act/jobs", data=fields | {"state": "queued"}),
            await client.post("/act/jobs", data=fields | {"action": "delete", "confirm": "q"}),
        ]
        await act(client, "jobs", **fields)

    assert {response.status_code for response in refused} == {400}
    assert audit(sync_boss) == [("ann", "cancel", "q", 4, 4)]


# -- everything that a filter matches


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


async def test_buttons_below_a_list_act_on_nothing_without_a_selection(acting, filled):
    """Without a script the buttons are not disabled: the form must not mean the whole queue."""
    page = (await acting.get("/queues/q/jobs?state=failed&error=ValueError")).text
    form = re.search(r'<form method="get".*?</form>', page, re.DOTALL)[0]
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
    response = await acting.get("/queues/q/confirm", params=fields | {"action": "delete"})

    assert response.status_code == 400
    assert "select at least one job" in response.text


@pytest.mark.parametrize(
    ("action", "query", "expected"),
    [
        ("retry", "", 1),
        ("retry", "state=completed", 0),
        ("cancel", "", 3),
        ("cancel", "state=active", 1),
        ("cancel", "state=failed", 0),
        ("resume", "", 1),
        ("run-now", "", 1),
        ("run-now", "state=queued", 1),
        ("priority", "", 2),
        ("priority", "state=ready", 1),
        ("delete", "", 6),
        ("delete", "until=2020-01-01", 0),
    ],
)
async def test_the_count_is_that_of_the_jobs_that_the_action_changes(acting, filled, action, query, expected):
    page = (await acting.get(f"/queues/q/confirm?action={action}&{query}")).text
    assert f"{action.capitalize().replace('-', ' ')} {expected} job{'' if expected == 1 else 's'}?" in page
    fields = hidden_fields(page) | {"confirm": "q", "priority": "9"}
    response = await act(acting, "jobs", **fields)

    assert f"done={action}%3A{expected}%3A{expected}" in response.headers["location"]
    assert audit(filled) == [("local", action, "q", expected, expected)]


async def test_a_confirmed_action_leads_back_to_the_page_it_came_from(acting, sync_boss):
    sync_boss.create_queue("q", policy="key_strict_fifo", retry_limit=0)
    sync_boss.send("q", singleton_key="k")
    sync_boss.fail("q", sync_boss.fetch("q"), ValueError("x"))
    page = (await acting.get("/queues/q/confirm?action=retry&state=failed&error=ValueError")).text
    assert 'href="/queues/q/jobs?state=failed&amp;error=ValueError">Back' in page
    location = (await act(acting, "jobs", **hidden_fields(page))).headers["location"]
    assert location == "/queues/q/jobs?state=failed&amp;error=ValueError&done=retry%3A1%3A1".replace(
        "amp;", ""
    )
    sync_boss.fail("q", sync_boss.fetch("q"), ValueError("x"))
    key = (await acting.get("/queues/q/key?key=k")).text
    confirm = re.search(r'href="([^"]*confirm[^"]*)"', key)[1].replace("&amp;", "&")
    fields = hidden_fields((await acting.get(confirm)).text) | {"confirm": "q"}
    location = (await act(acting, "jobs", **fields)).headers["location"]

    assert location == "/queues/q/key?key=k&done=delete%3A1%3A1"


async def test_a_form_does_not_lead_elsewhere(acting, filled):
    job = filled.find_jobs("q", state="failed")[0]
    for back in ("//evil.example", "https://evil.example", "/\\evil.example"):
        response = await act(acting, "jobs", queue="q", action="retry", id=str(job.id), back=back)
        assert response.headers["location"].startswith("/queues/q/jobs?done=")


# -- queues, schedules, dead letters


async def test_a_queue_is_paused_and_unpaused(acting, filled):
    await act(acting, "queue", queue="q", action="pause")
    assert filled.get_queue("q").paused
    await act(acting, "queue", queue="q", action="unpause")
    assert not filled.get_queue("q").paused
    assert [row[1] for row in audit(filled)] == ["pause", "unpause"]


@pytest.mark.parametrize(
    ("path", "fields", "lock"),
    [
        ("queue", {"action": "pause"}, "select from trioboss.queue for update"),
        ("jobs", {"action": "cancel"}, "select from trioboss.live_job for update"),
        ("jobs", {"action": "priority", "priority": "3"}, "select from trioboss.live_job for update"),
        ("send", {}, "lock table trioboss.live_job_common"),
    ],
    ids=["queue", "jobs", "priority", "send"],
)
async def test_an_action_does_not_wait_for_other_transactions(acting, dsn, sync_boss, path, fields, lock):
    sync_boss.create_queue("q")
    id = sync_boss.send("q")
    with psycopg.connect(dsn) as other, trio.fail_after(60):
        other.execute(lock.encode())
        response = await acting.post(f"/act/{path}", data={"queue": "q", "id": str(id), **fields})

    assert response.status_code == 503
    assert "Another transaction holds these jobs" in response.text
    assert audit(sync_boss) == []
    assert not sync_boss.get_queue("q").paused


async def test_a_schedule_is_paused_unpaused_and_run_now(acting, filled, boss):
    await boss.schedule("q", "0 0 1 1 *", {"from": "cron"}, key="k", priority=4)
    await act(acting, "schedule", queue="q", key="k", action="pause-schedule")
    assert "paused" in (await acting.get("/schedules")).text
    _, read = await boss._execute(boss._store.schedules.read_ticks())
    assert read == []
    await act(acting, "schedule", queue="q", key="k", action="unpause-schedule")
    _, read = await boss._execute(boss._store.schedules.read_ticks())
    assert len(read) == 1
    response = await act(acting, "schedule", queue="q", key="k", action="run-schedule")
    job = filled.get_job_by_id("q", response.headers["location"].split("/")[-1])

    assert (job.data, job.priority) == ({"from": "cron"}, 4)


COUNTED = {"action": "retry", "counted_on": "2026-01-01T00:00+00:00", "committed": "9:9:"}


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("jobs", {"action": "explode", "id": "01920000-0000-7000-8000-000000000001"}),
        ("jobs", {"action": "retry", "id": "x"}),
        ("jobs", {"action": "retry"}),
        ("jobs", {"action": "priority", "priority": "9" * 20, "id": "01920000-0000-7000-8000-000000000001"}),
        ("queue", {"action": "explode"}),
        ("schedule", {"action": "explode"}),
        ("redrive", {}),
        ("redrive", COUNTED | {"committed": "x"}),
        ("redrive", COUNTED | {"affected": "x"}),
        ("redrive", COUNTED | {"count": "x"}),
        ("redrive", COUNTED | {"audit": "zz"}),
        ("redrive", COUNTED | {"cursor": "zz"}),
        ("jobs", COUNTED | {"action": "explode"}),
        ("jobs", COUNTED | {"affected": "x"}),
        ("jobs", COUNTED | {"affected": "9" * 30}),
        ("jobs", COUNTED | {"examined": "-1"}),
        ("jobs", COUNTED | {"count": "x"}),
        ("jobs", COUNTED | {"audit": "zz"}),
        ("jobs", COUNTED | {"cursor": "zz"}),
        ("jobs", COUNTED | {"counted_on": "yesterday"}),
        ("jobs", COUNTED | {"committed": "9:3:"}),
    ],
)
async def test_a_wrong_action_is_refused_and_changes_nothing(acting, filled, path, fields):
    before = states(filled)
    response = await acting.post(f"/act/{path}", data={"queue": "q", **fields})

    assert response.status_code == 400
    assert states(filled) == before
    assert audit(filled) == []
