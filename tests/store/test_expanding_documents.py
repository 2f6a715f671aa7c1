"""JSON whose text is much longer than its row stops no claim, no schedule and no list of jobs.

A number like 1e131071 has 16 bytes in a row and 131,072 as text, and a text has at most a billion bytes.
"""

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import trio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

import trioboss
from trioboss.events import ActorRestarted, JobCompleted, QueueWarning, TickFired
from trioboss.testing import record, temporary_database

EXAMPLES = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
BOMB = "select jsonb_agg('1e131071'::jsonb) from generate_series(1, 10000)"
LARGEST = 256 * 2**20  # bytes of text that the database accepts

documents = st.builds(
    lambda element, count, wrap: (
        f"select {wrap % 'jsonb_agg(%s::jsonb)'} from generate_series(1, {count})",
        element,
    ),
    st.one_of(
        st.integers(-16_000, 131_071).map(lambda exponent: f"1e{exponent}"),
        st.sampled_from(['"x"', "1", "{}", '"' + "y" * 5000 + '"', '{"a": 1e-16000}', "1e-300"]),
    ),
    st.sampled_from(
        [1, 20, 300, 2_000]
    ),  # the largest texts are the examples below: each is written for seconds
    st.sampled_from(["%s", "jsonb_build_object('a', %s)"]),
)


@pytest.fixture(scope="module")
def writing(server_dsn: str, template: str) -> Iterator[tuple[trioboss.SyncBoss, psycopg.Connection[Any]]]:
    """A boss whose queue q all examples share, and a connection for plain SQL."""
    with (
        temporary_database(server_dsn, template) as dsn,
        trioboss.SyncBoss(dsn, migrate=False) as boss,
        psycopg.connect(dsn, autocommit=True) as database,
    ):
        boss.create_queue("q")
        yield boss, database


def is_accepted(database: psycopg.Connection[Any], insert: str, document: tuple[str, str]) -> bool:
    """Insert the document; whether the database accepted it, which it does only if it can be read."""
    try:
        database.execute(sql.SQL(insert).format(sql.SQL(document[0])), [document[1]])
    except (psycopg.errors.CheckViolation, psycopg.errors.ProgramLimitExceeded):
        return False
    return True


@EXAMPLES
@given(documents, st.booleans())
@example(("select jsonb_agg(%s::jsonb) from generate_series(1, 10000)", "1e131071"), False)
@example(("select jsonb_agg(%s::jsonb) from generate_series(1, 10000)", "1e131071"), True)
@example(("select jsonb_agg(%s::jsonb) from generate_series(1, 100)", "1e131071"), False)
def test_no_data_that_the_database_accepts_keeps_a_claim_from_other_jobs(writing, document, changed):
    boss, database = writing
    insert = "insert into trioboss.live_job (queue, data) values ('q', ({}))"
    if changed:
        boss.send("q", "before")
        insert = "update trioboss.live_job set data = ({})"
    is_accepted(database, insert, document)
    neighbour = boss.send("q", "neighbour")
    found = []
    while jobs := boss.fetch("q", batch_size=10):
        found += [job.id for job in jobs]
    boss.find_jobs("q")
    longest = database.execute("select max(octet_length(data::text)) from trioboss.live_job").fetchone()
    boss.delete_all_jobs("q")

    assert neighbour in found
    assert longest[0] <= LARGEST


@EXAMPLES
@given(documents)
@example(("select jsonb_agg(%s::jsonb) from generate_series(1, 10000)", "1e131071"))
def test_no_data_of_a_schedule_hides_the_others(writing, document):
    boss, database = writing
    is_accepted(
        database,
        "insert into trioboss.schedule (queue, key, cron, data) values ('q', 'k', '* * * * *', ({}))",
        document,
    )
    boss.schedule("q", "* * * * *", key="other")
    keys = {schedule.key for schedule in boss.get_schedules("q")}
    database.execute("delete from trioboss.schedule")

    assert "other" in keys


@pytest.mark.parametrize(
    "value",
    [
        "jsonb_build_object('dead_letter', repeat('x', 200000000))",
        "jsonb_build_object('dead_letter', repeat('x', 401))",
        "jsonb_build_object('trace', jsonb_build_object('a', '1e131071'::jsonb))",
        "('{\"retry_limit\": 1.' || repeat('0', 500) || '}')::jsonb",
    ],
)
def test_options_have_a_length(writing, value):
    _, database = writing
    insert = sql.SQL("insert into trioboss.live_job (queue, options) values ('q', {})")
    with pytest.raises(psycopg.errors.CheckViolation):
        database.execute(insert.format(sql.SQL(value)))


def test_a_document_that_expands_is_refused_with_its_size(writing):
    _, database = writing
    with pytest.raises(psycopg.errors.CheckViolation, match=r"131[0-9]+ bytes: at most 1048576 are allowed"):
        database.execute(
            "insert into trioboss.live_job (queue, data) "
            "select 'q', jsonb_agg('1e131071'::jsonb) from generate_series(1, 1000)"
        )
    with pytest.raises(psycopg.errors.CheckViolation, match="more than a billion bytes"):
        database.execute(f"insert into trioboss.live_job (queue, data) values ('q', ({BOMB}))")


# -- where the checks do not hold: data of another version


@pytest.fixture
def without_checks(database: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """The database without the checks of the size of a document."""
    database.execute("alter domain trioboss.document drop constraint document_check")
    database.execute("alter table trioboss.live_job disable trigger measure_data")
    yield database
    database.execute(
        "delete from trioboss.live_job; delete from trioboss.archive; delete from trioboss.schedule"
    )
    database.execute("alter table trioboss.live_job enable trigger measure_data")
    database.execute("alter domain trioboss.document add check (trioboss.text_size(value) >= 0)")


# Under all policies: tests/store/test_poison_rows.py, with rows that are read faster than a billion bytes.
async def test_a_job_that_cannot_be_read_is_quarantined_and_shown_without_its_data(dsn, without_checks):
    async def handler(job: trioboss.Job) -> None:
        pass

    with trio.fail_after(120):
        async with trioboss.open_boss(dsn, migrate=False) as boss:
            await boss.create_queue("q", policy="key_strict_fifo")
            (id,) = without_checks.execute(
                f"insert into trioboss.live_job (queue, key, data) values ('q', 'k', ({BOMB})) returning id"
            ).fetchone()
            listed = [job.data for job in await boss.find_jobs("q")]
            for number in range(3):
                await boss.send("q", number, singleton_key="other")
            async with record(boss.events()) as recorder:
                await boss.work("q", handler, concurrency=5)
                await recorder.wait_for(JobCompleted, count=3)
                await recorder.wait_for(QueueWarning, lambda event: event.warning == "quarantined")
                assert not recorder.of(ActorRestarted)
            ended = await boss.get_job_by_id("q", id)

    assert "more than a billion bytes" in listed[0]["unreadable"]
    assert "more than a billion bytes" in ended.data["unreadable"]
    assert "quarantined" in ended.output["message"]


async def test_a_schedule_that_cannot_be_read_is_reported_and_the_others_tick(dsn, without_checks):
    with trio.fail_after(120):
        async with trioboss.open_boss(dsn, migrate=False) as boss:
            await boss.create_queue("q")
            without_checks.execute(
                "insert into trioboss.schedule (queue, key, cron, data) "
                f"values ('q', 'unreadable', '* * * * * *', ({BOMB}))"
            )
            async with record(boss.events()) as recorder:
                await boss.schedule("q", "* * * * * *", key="other")
                await recorder.wait_for(TickFired, lambda event: event.key == "other", count=2)
                failed = await recorder.wait_for(
                    trioboss.events.ErrorEvent, lambda event: event.actor == "schedule q unreadable"
                )

    assert failed


# -- how much one claim brings

sizes = st.lists(
    st.tuples(st.sampled_from([10, 3_000, 700_000, 2_500_000, 5_000_000]), st.booleans()),
    min_size=2,
    max_size=8,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes, st.sampled_from(["data", "notes"]))
@example([(2_500_000, True)] * 4, "data")
@example([(2_500_000, True)] * 4, "notes")
def test_a_claim_brings_four_megabytes_at_most_however_well_they_compress(writing, jobs, column):
    boss, database = writing
    for number, (size, compressible) in enumerate(jobs):
        text = "x" * size if compressible else random.Random(number).randbytes(size // 2).hex()
        values = {"data": None, "notes": None} | {column: f'{{"progress": "{text}"}}'}
        database.execute(
            "insert into trioboss.live_job (queue, readiness, data, notes) "
            "values ('q', 'ready', %(data)s::text::jsonb, %(notes)s::text::jsonb)",
            values,
        )
    claims = []
    while claimed := boss.fetch("q", batch_size=10):
        texts = [job.data["progress"] if column == "data" else job.progress for job in claimed]
        claims.append([len(text) for text in texts])
    boss.delete_all_jobs("q")

    assert sum(map(len, claims)) == len(jobs)
    assert all(len(claim) == 1 or sum(claim) <= 2**22 for claim in claims)
