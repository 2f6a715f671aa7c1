"""Whole jobs are read by the names of the model's Job, and go to the archive and back with all they have."""

import re
from uuid import uuid4

import attrs
import pytest
from lifecycle_sessions import OWN
from psycopg.rows import dict_row
from sql_helpers import QueueUnderTest
from test_statements import FILES, NAMES

from trioboss.model.job import Job, Lease
from trioboss.model.settle_and_claim import Failure
from trioboss.sql import Catalog, read_source

RENAMED = {"queue": "name", "source_queue": "source_name"}
WHOLE_JOBS = [
    "find_ended_jobs",
    "find_job_by_id",
    "find_live_jobs",
    "find_newest_ended_jobs",
    "find_newest_live_jobs",
    "get_job",
]
# Columns of a live job that the archive does not need: how it waited, its size, and the terms of a lease that is over.
NOT_ARCHIVED = {
    *("rank", "readiness", "backlog", "slot", "owner", "size"),
    *("expires_on", "heartbeat", "heartbeat_on", "extensions"),
}
IN_NOTES = {"unique_key"}
ONLY_ARCHIVED = {"completed_on", "outcome", "output", "policy", "xid"}


def columns(sessions, table: str) -> set[str]:
    found = sessions.query(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
        [f"trioboss.{table}"],
    )
    return {name for (name,) in found}


@pytest.mark.parametrize("name", WHOLE_JOBS)
def test_whole_jobs_have_every_column_of_the_model(sessions, name):
    connection = sessions.own.pgconn
    connection.prepare(name.encode(), Catalog("trioboss").get(name).text.encode())
    described = connection.describe_prepared(name.encode())
    found = {described.fname(number).decode() for number in range(described.nfields)}

    assert {RENAMED.get(field.name, field.name) for field in attrs.fields(Job)} <= found


def test_the_archive_has_every_column_of_a_job_that_is_not_about_waiting(sessions):
    kept = columns(sessions, "live_job") - NOT_ARCHIVED - IN_NOTES

    assert columns(sessions, "archive") == kept | ONLY_ARCHIVED


def column_lists(table: str) -> list[tuple[str, set[str]]]:
    """Every list of columns with which a statement writes whole jobs to a table."""
    inserts = re.compile(rf"INSERT INTO trioboss\.{table} \(([^)]*)\)")
    return [
        (name, set(re.findall(r"\w+", found)))
        for name in NAMES
        for found in inserts.findall(read_source(name))
    ]


@pytest.mark.parametrize(("name", "written"), column_lists("archive"))
def test_a_job_is_archived_with_every_column(sessions, name, written):
    assert written == columns(sessions, "archive") - {"xid"}


REVIVED = [(name, found) for name, found in column_lists("live_job_common") if name in ("resume", "retry")]


@pytest.mark.parametrize(("name", "written"), REVIVED)
def test_a_job_returns_with_every_column_that_the_archive_has(sessions, name, written):
    kept = columns(sessions, "archive") - ONLY_ARCHIVED - {"worker"}

    assert written == kept | {"rank", "readiness", "backlog", "slot", "unique_key"}
    assert len(REVIVED) == 2


def test_the_list_of_columns_of_the_archive_is_written_once():
    files = [*FILES.glob("*.sql"), *FILES.glob("fragments/*.sql")]

    assert [path.stem for path in files if "INSERT INTO trioboss.archive (" in path.read_text()] == [
        "archive_done"
    ]


# -- the same by doing it: every column gets a value that no other has, and is read again afterwards

FILL = """
    UPDATE trioboss.live_job SET priority = 101, data = '"data"', retry_count = 103, start_after = '2001-01-10',
        started_on = '2001-01-11', created_on = '2001-01-18', worker = %(worker)s, attempt = 123,
        unique_key = 'ended:key', heartbeat = 114, heartbeat_on = '2001-01-15', extensions = 117,
        options = '{"retry_limit": 1020, "retry_delay": 104, "retry_backoff": true, "retry_delay_max": 105,
                    "retry_jitter": 0.106, "retry_multiplier": 1.06, "retry_window": 107, "expire_in": 113,
                    "heartbeat": 114,
                    "auto_heartbeat": false, "max_lease_extensions": 116, "retention": 119, "delete_after": 120,
                    "trace": {"traceparent": "124"}}',
        notes = jsonb_build_object('error', 'error', 'failures', 108, 'failed_on', '2001-01-09T00:00:00+00:00',
            'progress', 'progress', 'singleton_on', '2001-01-12T00:00:00+00:00', 'source', jsonb_build_object(
                'queue', 'source', 'id', %(source)s::text, 'created_on', '2001-01-21T00:00:00+00:00',
                'retry_count', 122))
    WHERE id = %(id)s
"""
# Of the view all_jobs: what an end changes.
LEASE = {"heartbeat_on", "lease_extensions", "expire_in"}
ENDED = {"state", "readiness", "completed_on", "live", *LEASE}
ENDS = {"complete": {*ENDED, "output"}, "cancel": ENDED, "fail": {*ENDED, "output"}}
# A job that returns is as it was, but for what makes it wait again.
BACK = {"state", "readiness", "start_after", "keep_until", "completed_on", "worker", "live"}
RETURNS = {"resume": BACK | {"singleton_on"}, "retry": BACK | {"retry_limit", "retry_count"}}


class Filled(QueueUnderTest):
    """An active job with a value of its own in every column."""

    def __init__(self, sessions, policy):
        super().__init__(sessions, policy)
        self.id = self.send("key")
        self.claim()
        sessions.own.execute(FILL, {"id": self.id, "worker": uuid4(), "source": uuid4()})

    def read(self) -> dict[str, object]:
        cursor = self.sessions.own.cursor(row_factory=dict_row)
        (row,) = cursor.execute("SELECT * FROM trioboss.all_jobs WHERE id = %s", [self.id]).fetchall()
        return row

    def end(self, way: str) -> None:
        lease = Lease(self.id, 123, self.read()["started_on"])
        match way:
            case "complete":
                self.run("settling", "complete_leases", [(lease, '"new"')])
            case "cancel":
                self.change("cancel", self.id)
            case "fail":
                self.run("settling", "fail_leases", [(lease, Failure('"new"', dead=True))])


def differing(before: dict[str, object], after: dict[str, object]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize("policy", ["standard", "exclusive"])
@pytest.mark.parametrize("way", ENDS)
def test_an_ended_job_has_in_the_archive_what_it_had_before(sessions, way, policy):
    job = Filled(sessions, policy)
    before = job.read()
    assert {name for name, value in before.items() if value is None} == {"completed_on", "dead_letter"}
    job.end(way)

    assert differing(before, job.read()) == ENDS[way]


@pytest.mark.parametrize(("end", "back"), [("cancel", "resume"), ("fail", "retry")])
def test_a_job_that_returns_has_what_it_had_before(sessions, end, back):
    job = Filled(sessions, "standard")
    job.end(end)
    archived = job.read()
    job.change(back, job.id)

    assert differing(archived, job.read()) <= RETURNS[back]


@pytest.mark.parametrize("unique_until", ["ended", "started"])
@pytest.mark.parametrize("end", ["complete", "cancel", "fail"])
def test_the_options_of_a_send_survive_the_archive(sessions, end, unique_until):
    job = QueueUnderTest(sessions, "standard", retry_limit=0)
    id = job.send("key", unique_until=unique_until)
    claimed = job.claim()
    if end == "cancel":
        job.change("cancel", id)
    else:
        getattr(job, end)(claimed)

    assert sessions.query("SELECT unique_until FROM trioboss.all_jobs") == [(unique_until,)]
    if end != "complete":
        job.change("resume" if end == "cancel" else "retry", id)
        assert job.send("key", OWN, unique_until=unique_until) is None
