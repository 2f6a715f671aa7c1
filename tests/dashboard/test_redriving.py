"""Dead letters are sent again from the dashboard: all, those of a filter, or a selection."""

from forms import act, audit, hidden_fields

from trioboss.dashboard import actions, queries


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


async def test_dead_letters_that_come_later_stay(acting, sync_boss):
    fail_three(sync_boss)
    page = (await acting.get("/queues/dead/redrive")).text
    sync_boss.insert("a", [{"data": 3}])
    sync_boss.fail("a", sync_boss.fetch("a"), ValueError("later"))
    await act(acting, "redrive", **hidden_fields(page))

    assert [job.data for job in sync_boss.find_jobs("dead")] == [3]
    assert audit(sync_boss) == [("local", "redrive", "dead", 3, 3)]


async def test_a_count_of_dead_letters_ends_where_their_errors_are_large(acting, sync_boss, monkeypatch):
    monkeypatch.setattr(queries, "_ERRORS", 3_000)
    sync_boss.create_queue("dead")
    for queue in ("a", "b"):
        sync_boss.create_queue(queue, dead_letter="dead", retry_limit=0)
        sync_boss.insert(queue, [{}] * 3)
        sync_boss.fail(queue, sync_boss.fetch(queue, batch_size=3), ValueError("x" * 1_000))
    page = (await acting.get("/queues/dead/redrive")).text
    rare = (await acting.get("/queues/dead/redrive?source=b")).text
    response = await act(acting, "redrive", **hidden_fields(page))

    assert "Redrive more than 1 dead letters" in page
    assert "The oldest 2 are counted here" in page
    assert "None of the oldest 2 dead letters of this queue came from b" in rare
    assert "done=redrive%3A6%3A6" in response.headers["location"]


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
