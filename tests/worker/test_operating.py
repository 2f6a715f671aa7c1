"""The commands of operators: queues and schedules, jobs by a filter, one job in full, blocked keys, workers."""

import json
import sys
from datetime import UTC, datetime, timedelta

import pytest
import trio
from worker_helpers import fail_all

import trioboss

ID = "00000000-0000-7000-8000-000000000000"


# -- queues and schedules


def test_queues_are_created_changed_and_deleted(run, sync_boss):
    code, printed, _ = run(
        *("create-queue", "mail", "--policy", "stately", "--retry-limit", "5", "--retry-backoff"),
        *("--expire-in", "1h30m", "--heartbeat", "90s"),
    )
    queue = sync_boss.get_queue("mail")
    assert (code, printed) == (0, "created queue 'mail'\n")
    assert (queue.policy, queue.retry_limit, queue.retry_backoff) == ("stately", 5, True)
    assert (queue.expire_in, queue.heartbeat) == (5400, 90)

    code, printed, _ = run("update-queue", "mail", "--no-retry-backoff", "--heartbeat", "none")
    queue = sync_boss.get_queue("mail")
    assert code == 0
    assert (queue.retry_backoff, queue.heartbeat, queue.retry_limit) == (False, None, 5)

    assert run("delete-queue", "mail")[:2] == (0, "deleted queue 'mail'\n")
    assert sync_boss.get_queue("mail") is None


def test_a_queue_with_jobs_is_deleted_only_when_somebody_agrees(run, sync_boss, queue):
    sync_boss.send(queue)

    code, _, errors = run("delete-queue", queue)
    assert code == 2
    assert (
        "delete queue 'mail' with 1 queued and 0 active jobs: nobody can be asked here: add --yes" in errors
    )
    assert run("delete-queue", queue, "--yes")[:2] == (0, "deleted queue 'mail' with 1 job\n")


def test_schedules_are_made_and_removed(run, sync_boss, queue):
    code, _, _ = run(
        "schedule", queue, "0 3 * * *", "[1]", "--tz", "Europe/Berlin", "--key", "k", "-o", "priority=3"
    )
    (schedule,) = sync_boss.get_schedules()
    assert code == 0
    assert (schedule.key, schedule.data, schedule.options) == ("k", [1], {"priority": 3})

    assert run("unschedule", queue)[0] == 1
    assert run("unschedule", queue, "--key", "k")[0] == 0
    assert sync_boss.get_schedules() == []


# -- jobs by a filter


@pytest.fixture
def failed(sync_boss, queue):
    """Three failed jobs, the last with a key, and one that waits."""
    ids = [sync_boss.send(queue), sync_boss.send(queue), sync_boss.send(queue, singleton_key="k")]
    fail_all(sync_boss, queue)
    return [*ids, sync_boss.send(queue)]


def test_jobs_are_listed_by_state_key_and_time_newest_first(run, queue, failed):
    def ids(*arguments):
        return [job["id"] for job in json.loads(run("jobs", queue, "--json", *arguments)[1])]

    assert ids("--newest") == [str(id) for id in reversed(failed)]
    assert ids("--state", "failed", "--limit", "2") == [str(id) for id in failed[:2]]
    assert ids("--state", "failed", "--after", str(failed[1])) == [str(failed[2])]
    assert ids("--key", "k") == [str(failed[2])]
    assert ids("--since", "1h") == [str(id) for id in failed]
    assert ids("--until", "1h") == []
    assert ids("--since", (datetime.now(UTC) + timedelta(hours=1)).isoformat()) == []


def test_a_filter_is_counted_first_and_needs_an_answer(run, sync_boss, queue, failed):
    assert run("retry", queue, "--state", "failed", "--dry-run")[:2] == (
        0,
        "3 failed jobs of queue 'mail' match\n",
    )
    code, printed, errors = run("retry", queue, "--state", "failed", "--since", "1h")
    assert (code, printed) == (2, "")
    assert "retry 3 failed jobs of queue 'mail': nobody can be asked here: add --yes" in errors
    assert sync_boss.get_job_by_id(queue, failed[0]).state == "failed"

    assert run("retry", queue, "--key", "k", "--yes")[:2] == (0, "1 of 1 retried\n")
    assert run("retry", queue, "--since", "1h", "--yes")[:2] == (0, "2 of 2 retried\n")
    assert {sync_boss.get_job_by_id(queue, id).state for id in failed[:3]} == {"retry"}


def test_cancel_resume_and_delete_by_a_filter(run, sync_boss, queue, failed):
    assert run("cancel", queue, "--all", "--yes")[:2] == (0, "1 of 1 cancelled\n")
    assert run("resume", queue, "--since", "1h", "--yes")[:2] == (0, "1 of 1 resumed\n")
    assert run("delete", queue, "--state", "failed", "--limit", "2", "--yes")[:2] == (0, "2 of 2 deleted\n")
    assert run("delete", queue, "--all", "--yes")[:2] == (0, "2 of 2 deleted\n")
    assert run("delete", queue, "--all", "--yes")[0] == 1
    assert sync_boss.find_jobs(queue) == []


def test_a_filter_reaches_more_jobs_than_a_page(run, sync_boss, queue):
    sync_boss.insert(queue, [{} for _ in range(2300)])

    assert run("cancel", queue, "--state", "created", "--yes")[:2] == (0, "2300 of 2300 cancelled\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["retry", "mail"], "give ids, or a filter"),
        (["retry", "mail", ID, "--state", "failed"], "not both"),
        (["retry", "mail", "--state", "active", "--yes"], "retry is for jobs that are failed"),
        (["retry", "nowhere", "--all", "--yes"], "'nowhere' does not exist"),
        (["jobs", "mail", "--since", "yesterday"], "since: 'yesterday' is neither a time like"),
        (["create-queue", "x", "--policy", "odd"], "policy"),
        (["create-queue", "mail", "--retry-limit", "9"], "use update_queue"),
        (["update-queue", "mail"], "no option is given"),
        (["update-queue", "nowhere", "--retry-limit", "9"], "does not exist"),
        (["delete-queue", "nowhere"], "does not exist"),
        (["schedule", "mail", "every day"], "cron"),
        (["schedule", "mail", "* * * * *", "--tz", "Mars"], "tz"),
        (["redrive", "nowhere"], "does not exist"),
        (["redrive", "mail", "--to", "mail"], "is the dead letter queue itself"),
        (["plans", "rollback", "--from", "99"], "version: 99"),
        (["send", "mail", "1", "-o", "priorty=1"], "did you mean 'priority'?"),
        (["top", "--interval", "0"], "interval"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistake_is_one_sentence(run, queue, arguments, message):
    code, printed, errors = run(*arguments)

    assert (code, printed) == (2, "")
    line, _ = errors.splitlines()  # and the address of a page
    assert message in line


# -- one job in full


def test_show_has_the_attempts_with_their_stacks_and_the_dead_letter(run, sync_boss):
    sync_boss.create_queue("graves")
    sync_boss.create_queue("mail", retry_limit=1, dead_letter="graves")
    id = sync_boss.send("mail", {"secret": 1})
    fail_all(sync_boss, "mail", times=2)
    (dead_letter,) = sync_boss.find_jobs("graves")

    code, printed, _ = run("show", "mail", str(id))
    assert code == 0
    for part in (
        "state        failed",
        "1 of 1 retries",
        "  1 failed",
        "  2 failed",
        "ValueError: it went",
        str(dead_letter.id),
    ):
        assert part in printed
    assert "secret" not in printed
    assert "secret" in run("show", "mail", str(id), "--data")[1]
    shown = json.loads(run("show", "mail", str(id), "--json")[1])
    assert [attempt["attempt"] for attempt in shown["attempts"]] == [1, 2]
    assert shown["attempts"][0]["error"]["name"] == "ValueError"
    assert shown["dead_letter_jobs"] == [{"queue": "graves", "id": str(dead_letter.id), "state": "created"}]


def test_a_policy_that_the_queue_does_not_have_is_named_as_it_is_written(run, queue):
    code, _, errors = run("create-queue", queue, "--policy", "short")

    assert code == 2
    assert "policy is 'standard', not 'short'" in errors


def test_show_has_the_backlog_of_its_key_and_why_it_waits(run, sync_boss):
    sync_boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
    first, second, third = (sync_boss.send("orders", n, singleton_key="k") for n in range(3))
    fail_all(sync_boss, "orders")

    code, printed, _ = run("show", "orders", str(third))

    assert code == 0
    assert f"key 'k' is blocked by job {first}" in printed
    backlog = printed[printed.index("the backlog of its key") :].splitlines()
    assert [line.split()[1] for line in backlog[1:]] == [str(first), str(second), str(third)]
    assert backlog[1].endswith("failed, blocks the key")
    assert backlog[3].endswith("← this job")


def test_a_job_that_is_not_there(run, queue):
    code, printed, errors = run("show", queue, ID)

    assert (code, printed, ID in errors) == (1, "", True)
    assert "it may have been deleted" in errors
    assert "it may have been deleted" in run("why", queue, ID)[2]


# -- blocked keys


@pytest.fixture
def blocking(sync_boss):
    """A strict FIFO queue with a dead letter queue, and a key with a failed job and two jobs behind it: their ids."""
    sync_boss.create_queue("graves")
    sync_boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0, dead_letter="graves")
    ids = [str(sync_boss.send("orders", n, singleton_key="k")) for n in range(3)]
    fail_all(sync_boss, "orders")
    sync_boss.send("orders", singleton_key="other")
    return ids


def test_blocked_lists_keys_with_the_commands_that_unblock_them(run, sync_boss, blocking):
    code, printed, _ = run("blocked")

    heading, row, *commands = printed.splitlines()
    assert code == 0
    assert heading.split() == ["queue", "key", "failed", "job", "blocked", "for", "waiting", "error"]
    assert row.split()[:3] == ["orders", "k", blocking[0]]
    assert "  2  " in row
    assert row.endswith("ValueError: it went wrong")
    assert [line.split("#")[0].strip() for line in commands[1:]] == [
        f"trioboss {command} orders {blocking[0]}" for command in ("show", "retry", "delete")
    ]
    (found,) = json.loads(run("blocked", "orders", "--json")[1])
    assert (found["key"], found["id"], found["waiting"]) == ("k", blocking[0], 2)

    sync_boss.delete_job("orders", blocking[0])
    assert run("blocked")[:2] == (0, "no key is blocked\n")
    assert run("blocked", "nowhere")[0] == 2
    assert "only key_strict_fifo blocks keys" in run("blocked", "graves")[2]


def test_blocked_tells_how_to_retry_all_if_it_lists_several_keys(run, sync_boss, blocking):
    sync_boss.fail("orders", sync_boss.fetch("orders"))

    _, printed, _ = run("blocked")

    assert "to unblock the first of these keys" in printed
    assert printed.splitlines()[-1].startswith("  trioboss retry orders --state failed")


def test_show_of_the_failed_job_tells_that_it_blocks_its_key(run, blocking):
    _, printed, _ = run("show", "orders", blocking[0])

    assert "why          it failed and blocks key 'k': retry it or delete it" in printed
    shown = json.loads(run("show", "orders", blocking[0], "--json")[1])["job"]
    assert (shown["data"], shown["output"]) == ("…", "…")


def test_jobs_behind_a_blocked_key_are_not_ready(run, sync_boss, blocking):
    (row,) = [row for row in json.loads(run("queues", "--json")[1]) if row["queue"] == "orders"]

    assert (row["ready"], row["blocked"], row["failed"]) == (1, 2, 1)


def test_redrive_leaves_the_copy_of_a_job_that_blocks_its_key_unless_it_is_forced(run, sync_boss, blocking):
    code, printed, _ = run("redrive", "graves", "--yes")
    assert code == 1
    assert "1 job stays: the failed job that it is a copy of blocks its key" in printed
    assert "--force" in printed
    sync_boss.retry("orders", blocking[0])
    assert sync_boss.redrive("graves") == trioboss.Redriven(0, {}, 0, 0, duplicates=1)

    assert run("redrive", "graves", "--yes", "--force")[:2] == (0, "1 job sent to 'orders'\n")


def test_redrive_leaves_the_copy_of_a_job_that_was_retried_and_has_completed(run, sync_boss, blocking):
    sync_boss.retry("orders", blocking[0])
    sync_boss.complete("orders", sync_boss.fetch("orders"))

    assert sync_boss.redrive("graves", dry_run=True) == trioboss.Redriven(0, {}, 0, 0, duplicates=1)
    assert sync_boss.redrive("graves") == trioboss.Redriven(0, {}, 0, 0, duplicates=1)
    assert sync_boss.redrive("graves", force=True).moved == 1


def test_redrive_sends_the_copy_of_a_job_that_was_given_up(run, sync_boss, blocking):
    sync_boss.delete_job("orders", blocking[0])

    assert run("redrive", "graves", "--yes")[:2] == (0, "1 job sent to 'orders'\n")


def test_a_queued_job_is_changed_and_a_failed_one_is_not(run, sync_boss, blocking):
    assert run("update-job", "orders", blocking[1], "--data", "[7]", "-o", "priority=3")[:2] == (
        0,
        f"changed job {blocking[1]}: data, priority\n",
    )
    job = sync_boss.get_job_by_id("orders", blocking[1])
    assert (job.data, job.priority) == ([7], 3)

    code, _, errors = run("update-job", "orders", blocking[0], "--data", "1")
    assert (code, f"trioboss retry orders {blocking[0]}; change it; trioboss unpause" in errors) == (1, True)
    assert run("update-job", "orders", ID, "--data", "1")[0] == 1
    assert run("update-job", "orders", blocking[1])[0] == 2


# -- workers


async def test_workers_are_listed_while_they_are_there(workers, boss, dsn):
    worker = await workers.start("-q", "short")
    id = await boss.send("short", 1)
    await worker.prints(id, "completed")

    command = [sys.executable, "-m", "trioboss", "workers", "--json", "--dsn", dsn]
    listed = await trio.run_process(command, capture_stdout=True)

    (row,) = json.loads(listed.stdout)
    assert (row["queue"], row["present"], row["running"]) == ("short", True, 0)
    assert row["name"].endswith(f":{worker.pid}")
