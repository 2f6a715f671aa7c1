"""Values that plain SQL may not insert: each is refused by its name."""

import psycopg
import pytest
from psycopg import sql

OUT_OF_RANGE = [
    ("start_after", "-infinity"),
    ("start_after", "infinity"),
    ("keep_until", "infinity"),
    ("created_on", "20000-01-01"),
    ("singleton_on", "infinity"),
    ("unique_until", "tomorrow"),
    ("singleton_key", "x" * 1001),
    ("expire_in", "170000 years"),
    ("expire_in", "-1 second"),
    ("heartbeat", "170000 years"),
    ("delete_after", "170000 years"),
    ("retention", "-1 day"),
    ("retry_window", "170000 years"),
    ("retry_jitter", "NaN"),
    ("retry_jitter", "1.5"),
    ("retry_multiplier", "0.9"),
    ("retry_multiplier", "NaN"),
    ("retry_delay", "Infinity"),
    ("retry_delay", "-1"),
    ("retry_delay_max", "1e300"),
    ("retry_limit", "-1"),
    ("retry_limit", "2147483647"),
    ("max_lease_extensions", "-1"),
]
NOT_OF_A_NEW_JOB = [
    ("state", "active"),
    ("attempt", "1"),
    ("retry_count", "1"),
    ("started_on", "2030-01-01"),
    ("started_on", "-infinity"),
    ("completed_on", "2030-01-01"),
    ("heartbeat_on", "2030-01-01"),
    ("worker", "01890a5d-ac96-774b-bcce-b302099a8057"),
    ("output", "{}"),
    ("progress", "1"),
]


@pytest.mark.parametrize(("column", "value"), [*OUT_OF_RANGE, *NOT_OF_A_NEW_JOB])
async def test_a_value_that_a_queued_job_cannot_have_is_refused_by_name(boss, database, column, value):
    await boss.create_queue("q")
    insert = sql.SQL("insert into trioboss.job (name, {}) values ('q', %s)").format(sql.Identifier(column))
    with pytest.raises(psycopg.errors.CheckViolation, match=f"^{column}: "):
        database.execute(insert, [value])
    assert await boss.find_jobs("q") == []


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ("[]", "options"),
        ('{"retry_limit": "5"}', "retry_limit"),
        ('{"retry_limit": 1.5}', "retry_limit"),
        ('{"retry_limit": 1000000001}', "retry_limit"),
        ('{"retry_limit": null}', "retry_limit"),
        ('{"retry_backoff": 1}', "retry_backoff"),
        ('{"expire_in": 1e300}', "expire_in"),
        ('{"dead_letter": 5}', "dead_letter"),
        ('{"colour": "red"}', "colour"),
    ],
)
async def test_options_written_to_the_table_itself_are_checked_by_name(boss, database, options, name):
    await boss.create_queue("q")
    id = await boss.send("q")
    with pytest.raises(psycopg.errors.CheckViolation, match=f"^{name}: "):
        database.execute("update trioboss.live_job set options = %s where id = %s", [options, id])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('{"retry_limti": 3}', "^retry_limti: a job has no such option; it has .*retry_limit"),
        ('{"retry_limit": -3}', "^retry_limit: -3 is out of range: it must be an integer from 0 to"),
        ('{"heartbeat": "1"}', '^heartbeat: "1" is out of range: it must be a number from 1 to'),
    ],
)
async def test_an_option_that_is_refused_says_what_is_allowed(boss, database, options, message):
    await boss.create_queue("q")
    id = await boss.send("q")

    with pytest.raises(psycopg.errors.CheckViolation, match=message):
        database.execute("update trioboss.live_job set options = %s where id = %s", [options, id])
