"""Whole jobs are read in the order of the model's Job, and go to the archive and back with all they have."""

import re
from uuid import UUID, uuid4

import attrs
import pytest
from lifecycle_desk import OWN
from psycopg.rows import dict_row
from test_statements import NAMES, source

from trioboss.model.job import Job, Lease, NewJob
from trioboss.model.settle_and_claim import ClaimRequest, Failure
from trioboss.sql import Catalog

RENAMED = {"queue": "name", "source_queue": "source_name"}
SECONDS = {"expire_in", "heartbeat"}  # an interval there, seconds here: such a column has no name
WHOLE_JOBS = {
    "claim": 2,
    "claim_in_order": 2,
    "find_jobs": 0,
    "find_jobs_by_id": 0,
    "find_live_jobs": 0,
    "get_job": 0,
}  # and how many columns go before
NOT_ARCHIVED = {"gate"}


@pytest.mark.parametrize("name", sorted(WHOLE_JOBS))
def test_whole_jobs_are_read_in_the_order_of_the_model(desk, name):
    connection = desk.hands[OWN].pgconn
    connection.prepare(name.encode(), Catalog("trioboss").get(name).text.encode())
    described = connection.describe_prepared(name.encode())
    columns = [described.fname(number).decode() for number in range(described.nfields)]
    expected = [RENAMED.get(field.name, field.name) for field in attrs.fields(Job)]

    named = [
        column if field not in SECONDS else field
        for field, column in zip(expected, columns[WHOLE_JOBS[name] :], strict=True)
    ]
    assert named == expected


def archive_lists() -> list[tuple[str, set[str]]]:
    """Every list of columns that is written to the archive."""
    inserts = re.compile(r"INSERT INTO trioboss\.archive \(([^)]*)\)")
    return [
        (name, set(re.findall(r"\w+", columns)))
        for name in NAMES
        for columns in inserts.findall(source(name))
    ]


@pytest.mark.parametrize(("name", "columns"), archive_lists())
def test_a_job_is_archived_with_every_column_but_its_gate(desk, name, columns):
    rows = desk.query(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'trioboss.job'::regclass AND attnum > 0"
    )

    assert columns == {column for (column,) in rows} - NOT_ARCHIVED


# -- the same by doing it: every column gets a value that no other has, and is looked for afterwards

FILL = """
    UPDATE trioboss.job SET priority = 101, data = '"data"', retry_limit = 102, retry_count = 103, retry_delay = 104,
        retry_backoff = true, retry_delay_max = 105, retry_jitter = 0.106, retry_window = '107 s', backoff_count = 108,
        failed_on = '2001-01-09', start_after = '2001-01-10', started_on = '2001-01-11', singleton_key = 'key',
        singleton_on = '2001-01-12', unique_until = 'ended', expire_in = '113 s', heartbeat = '114 s',
        auto_heartbeat = false, heartbeat_on = '2001-01-15', max_lease_extensions = 116, lease_extensions = 117,
        created_on = '2001-01-18', keep_until = '2001-01-19', delete_after = '120 s', output = '"output"',
        progress = '"progress"', dead_letter = NULL, worker = %(worker)s, source_name = 'source',
        source_id = %(source)s, source_created_on = '2001-01-21', source_retry_count = 122, attempt = 123
    WHERE id = %(id)s
"""
ENDS = {
    "complete": {"state", "output", "completed_on"},
    "cancel": {"state", "completed_on"},
    "fail": {"state", "output", "completed_on", "failed_on", "backoff_count"},
}
# A job that comes back is as it was, but for what makes it wait again.
BACK = {
    "state",
    "start_after",
    "keep_until",
    "completed_on",
    "worker",
    "heartbeat_on",
    "lease_extensions",
    "gate",
}
RETURNS = {"resume": BACK | {"singleton_on"}, "retry": BACK | {"retry_limit", "retry_count"}}


class Filled:
    """An active job with something of its own in every column."""

    def __init__(self, desk, policy):
        self.desk = desk
        self.say("queues", "create", {"policy": policy})
        self.id = self.say("sending", "send", NewJob(singleton_key="key"), own=True)
        self.say("claiming", "claim", ClaimRequest(1))
        self.desk.hands[OWN].execute(FILL, {"id": self.id, "worker": uuid4(), "source": uuid4()})

    def say(self, part, verb, *args, **options):
        return self.desk.say(
            OWN, lambda own: getattr(getattr(self.desk.store, part), verb)("q", *args, **options)
        )

    def read(self, table: str) -> dict[str, object]:
        cursor = self.desk.hands[OWN].cursor(row_factory=dict_row)
        (row,) = cursor.execute(f"SELECT * FROM trioboss.{table} WHERE id = %s", [self.id]).fetchall()
        return row

    def end(self, verb: str) -> None:
        lease = Lease(UUID(str(self.id)), 123, self.read("job")["started_on"])
        match verb:
            case "complete":
                self.say("settling", "complete_leases", [(lease, '"new"')])
            case "cancel":
                self.say("settling", "cancel", self.id, own=True)
            case "fail":
                self.say("settling", "fail_leases", [(lease, Failure('"new"', dead=True))])


def differing(before: dict[str, object], after: dict[str, object]) -> set[str]:
    return {name for name in before.keys() & after.keys() if before[name] != after[name]}


@pytest.mark.parametrize("policy", ["standard", "exclusive"])
@pytest.mark.parametrize("verb", ENDS)
def test_an_ended_job_has_in_the_archive_what_it_had_before(desk, verb, policy):
    job = Filled(desk, policy)
    before = job.read("job")
    assert {name for name, value in before.items() if value is None} == {"completed_on", "dead_letter"}
    job.end(verb)

    assert differing(before, job.read("archive")) == ENDS[verb]


@pytest.mark.parametrize(("end", "back"), [("cancel", "resume"), ("fail", "retry")])
def test_a_job_that_comes_back_has_what_it_had_before(desk, end, back):
    job = Filled(desk, "standard")
    job.end(end)
    archived = job.read("archive")
    job.say("settling", back, job.id, own=True)

    assert differing(archived, job.read("job")) <= RETURNS[back]
