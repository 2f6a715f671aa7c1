"""Seed 003, from line 665: fetching, working, schedules and settling in pg-boss 10; and what pg-boss 6 has for it."""

import pytest
from conformance_rows import METADATA, row

import trioboss
from trioboss import JobState, UsageError


@row("003:668", "003:684", "003:725", "003:745", "004:63b", "004:555")
def test_jobs_are_fetched_in_batches_and_settled_manually(b, make):
    q = make()
    b.insert(q, [{} for _ in range(25)])
    jobs = b.fetch(q, batch_size=20)

    assert (type(jobs), len(jobs)) == (list, 20)
    assert b.complete(q, jobs[:19]).affected == 19
    assert b.fail(q, jobs[19]).affected == 1


@row("003:678")
def test_an_empty_queue_gives_an_empty_list(b, make):
    assert b.fetch(make()) == []


@row("003:687")
def test_fetch_goes_by_priority_unless_told_otherwise(b, make):
    q = make()
    for priority in (1, 3, 2):
        b.send(q, priority, priority=priority)

    assert [job.data for job in b.fetch(q)] == [3]
    assert [job.data for job in b.fetch(q, batch_size=9, priority=False)] == [1, 2]


@row("003:691", "003:698", "003:709", "003:715")
def test_a_job_has_all_its_metadata(b, make):
    q = make()
    b.send(q, singleton_seconds=60)
    (job,) = b.fetch(q)

    assert [name for name in METADATA if not hasattr(job, name)] == []
    assert job.singleton_on is not None
    assert job.policy == "standard"


@row("003:754", "003:758", "003:773", "003:781", "003:807", "004:411", "004:424")
def test_workers_run_as_many_jobs_at_once_as_they_are_told(seen):
    assert (seen.peak["one"], seen.peak["five"]) == (1, 5)
    assert seen.runs["five"] == 10
    assert seen.values["sizes"] == [5, 5, 2]


@row("003:769")
def test_a_worker_leases_jobs_ahead(seen):
    assert (seen.values["leased"], seen.peak["ahead"]) == (1 + 3, 1)


@row("003:777")
def test_a_slot_is_refilled_while_another_is_still_busy(seen):
    assert seen.values["refilled"]
    assert (seen.runs["refill"], seen.peak["refill"]) == (5, 2)


@row("003:756", "003:834", "003:962", "004:518")
def test_workers_are_stopped_by_name_by_themselves_and_by_id(seen):
    assert seen.runs["one"] == 3
    assert seen.values["off"].state == "created"


@row("003:805", "003:811", "004:422", "004:422b")
def test_the_outcome_of_a_handler_is_the_output_of_its_job(seen):
    assert seen.values["fine"].output == {"ret": "fine"}
    assert seen.values["fail"].output["name"] == "ValueError"
    assert seen.values["fail"].output["message"] == "no luck"
    assert "no luck" in seen.values["fail"].output["stack"]


@row("003:805b", "004:433")
async def test_a_plain_function_runs_in_a_thread_or_is_refused(shared_dsn, make):
    q = make()
    async with trioboss.open_boss(shared_dsn, migrate=False, supervise=False, schedule=False) as boss:
        with pytest.raises(UsageError, match="thread=True"):
            await boss.work(q, lambda job: None)
        await boss.work(q, lambda job: job.complete("done"), thread=True)
        job = await boss.wait_for(q, await boss.send(q), timeout=60)

    assert job.output == "done"


@row("003:857", "003:871b")
def test_a_tick_is_one_job_however_many_bosses_there_are(seen):
    jobs = seen.values["ticks"]
    ticks = [event for each in (seen.events, seen.elsewhere) for event in each if hasattr(event, "due")]

    assert {job.data["by"] for job in jobs} == {"cron", "rule"}
    assert len({(tick.key, tick.due) for tick in ticks}) == len(ticks)
    assert len(jobs) <= len(ticks)


@row("003:881", "003:885", "003:894", "003:894b", "003:899", "003:902", "003:906", "004:615")
def test_schedules_are_made_replaced_and_removed(b, make):
    q = make()
    b.schedule(q, "0 0 L * *", {"a": 1}, priority=3)
    b.schedule(q, "0 3 * * mon#2", key="second", tz="America/Chicago")
    b.schedule(q, "@daily")
    schedules = b.get_schedules(q)

    assert [(each.key, each.cron, each.timezone) for each in schedules] == [
        ("", "0 0 * * *", "UTC"),
        ("second", "0 3 * * mon#2", "America/Chicago"),
    ]
    ticks = trioboss.preview_schedule("0 3 * * *", 1, tz="America/Chicago", after="2030-07-01T00:00Z")
    assert [tick.hour for tick in ticks] == [8]
    for option in ({"id": "x"}, {"start_after": 5}):
        with pytest.raises(UsageError):
            b.schedule(q, "* * * * *", **option)
    b.unschedule(q)
    assert [each.key for each in b.get_schedules(q)] == ["second"]


@row("003:912", "003:914", "003:916", "003:922", "003:926", "003:930", "004:642", "004:652")
def test_jobs_are_cancelled_and_resumed_one_or_many(b, make, seen):
    q = make()
    ids = [b.send(q) for _ in range(3)]
    assert b.cancel(q, ids[0]).affected == 1
    assert b.cancel(q, ids).affected == 2
    with pytest.raises(trioboss.JobNotFound):
        b.cancel(q, ids)
    assert b.resume(q, ids[0]).affected == 1
    assert b.resume(q, ids[1:]).affected == 2

    assert b.get_queue_size(q) == 3
    assert seen.values["reasons"]["beat"] == "cancelled"  # by another boss


@row("003:934", "003:936", "003:942", "003:948", "003:950", "003:954", "004:656", "004:670")
def test_jobs_are_completed_and_failed_one_or_many(b, make):
    q = make(retry_limit=0)
    b.insert(q, [{} for _ in range(6)])
    jobs = b.fetch(q, batch_size=6)
    b.complete(q, jobs[0], {"a": 1})
    b.fail(q, jobs[1], {"why": "x"})
    assert b.get_job_by_id(q, jobs[0].id).output == {"a": 1}
    assert b.get_job_by_id(q, jobs[1].id).output == {"why": "x"}
    with pytest.raises(trioboss.LeaseLost) as lost:
        b.complete(q, jobs[:3])
    assert set(lost.value.ids) == {jobs[0].id, jobs[1].id}
    assert b.get_job_by_id(q, jobs[2].id).state == "completed"
    assert b.complete(q, [jobs[2].id, jobs[3].id]).affected == 1
    assert b.fail(q, jobs[4:]).affected == 2
    with pytest.raises(trioboss.LeaseLost):
        b.fail(q, jobs[4])


@row("003:966", "003:972", "004:684")
def test_the_size_of_a_queue_is_counted_before_a_state(b, make):
    q = make()
    b.insert(q, [{} for _ in range(4)])
    b.complete(q, b.fetch(q))
    b.fetch(q)

    assert (b.get_queue_size(q), b.get_queue_size(q, before="completed")) == (2, 3)
    assert all(b.get_queue_size(q, before=state) >= 0 for state in JobState)


@row("003:982", "003:984", "004:702")
def test_a_job_is_read_wherever_it_is(b, make):
    q = make()
    ended = b.send(q)
    b.complete(q, b.fetch(q))
    with b.transaction() as conn:
        id = b.send(q, conn=conn)

        assert b.get_job_by_id(q, id, conn=conn).state == "created"
        assert b.get_job_by_id(q, id) is None
    assert b.get_job_by_id(q, id).state == "created"
    assert b.get_job_by_id(q, ended).state == "completed"


@row("003:1008")
def test_debounced_is_another_name_of_short(b, make):
    assert b.get_queue(make(policy="debounced")).policy == "short"


@row("003:1019", "004:714")
def test_clear_storage_deletes_all_jobs_and_no_queue(b, make):
    q = make()
    b.send(q)
    b.complete(q, b.fetch(q))
    b.send(q)
    b.clear_storage()

    assert b.find_jobs(q) == []
    assert b.get_queue(q) is not None


@row("004:706", "004:710")
def test_queued_jobs_are_deleted_of_one_queue_or_of_all(b, make):
    one, other = make(), make()
    for q in (one, other):
        b.insert(q, [{} for _ in range(3)])
        b.fetch(q)

    assert b.delete_queued_jobs(one) == 2
    assert b.delete_all_queued_jobs() >= 2
    assert [job.state for q in (one, other) for job in b.find_jobs(q)] == ["active", "active"]


@row("004:407", "004:409")
def test_a_pattern_is_for_all_queues_that_match_it_also_later(seen):
    assert (seen.runs["report-a"], seen.runs["report-b-5"], seen.runs["report-c5"]) == (0, 1, 1)


@row("004:540")
def test_a_pattern_fetches_too(b, make):
    q = make()
    b.create_queue(f"{q}-report-a")
    b.send(f"{q}-report-a", 1)

    assert [job.data for job in b.fetch(f"{q}-rep*")] == [1]


@row("004:144", "004:467", "004:467b", "004:469", "004:495", "004:527")
def test_completion_jobs_tell_of_every_job_that_ended(seen):
    fine, failed = seen.values["completions"]["fine"], seen.values["completions"]["fail"]

    assert seen.values["completion worker"] == "__state__completed__outcomes"
    assert (fine["request"]["name"], fine["response"], fine["failed"]) == ("outcomes", {"ret": "fine"}, False)
    assert (failed["state"], failed["failed"], failed["retryCount"]) == ("failed", True, 2)
    assert {"createdOn", "startedOn", "completedOn"} <= set(fine)
    expired = seen.values["expiry"]
    assert (expired["request"]["data"], expired["failed"], expired["state"]) == ("expire", True, "failed")


@row("004:583")
def test_completion_jobs_are_fetched(b, make):
    q = make()
    assert b.fetch_completed(q) == []
    b.send(q, 7)
    b.complete(q, b.fetch(q), "out")

    assert [job.data["response"] for job in b.fetch_completed(q)] == ["out"]
