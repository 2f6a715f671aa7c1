"""Nobody leads our functions and statements astray: not by a search_path, not by temporary tables, not by overloads.

A role that may create objects somewhere can try to have them taken for ours or for Postgres's own, by a session with
more rights. Functions fix their search_path or qualify every name; our sessions fix theirs.
"""

from pathlib import Path

import psycopg
import pytest
import trio
from psycopg.sql import SQL, Identifier

import trioboss
from trioboss.events import ErrorEvent, TickFired
from trioboss.testing import record

HOUSE_PATH = "search_path=pg_catalog, pg_temp"

# Functions that Postgres writes into the statement that calls them: they cannot have a search_path of their own, so
# every name in them is qualified. The test below calls each.
QUALIFIED = {
    "answer_size": "trioboss.answer_size(3, '1'::pg_catalog.jsonb, NULL, '{}'::pg_catalog.jsonb)",
    "backlog_rank": "trioboss.backlog_rank('singleton', 5)",
    "completion_of": (
        "trioboss.completion_of(NULL, 'q', '1'::pg_catalog.jsonb, 'completed', '2'::pg_catalog.jsonb,"
        " 'epoch', 'epoch', 'epoch', 3)"
    ),
    "kept_owner": "trioboss.kept_owner('key_strict_fifo', 'key:k')",
    "key_backlog": "trioboss.key_backlog(true, 'k')",
    "key_lock": "trioboss.key_lock('q', 'k', 7)",
    "lock_number": "trioboss.lock_number('q', 7)",
    "make_id": "pg_catalog.pg_typeof(trioboss.make_id())",
    "queued_readiness": "trioboss.queued_readiness('epoch', 'epoch', 'key:k')",
    "queued_slot": "trioboss.queued_slot('stately', 'k', 1)",
    "retry_delay": "trioboss.retry_delay(1.5, true, 100, 0.5, 2, 3, 0.25)",
}


def test_every_function_fixes_its_search_path(dsn):
    with psycopg.connect(dsn) as connection:
        functions = connection.execute(
            "select proname, coalesce(array_to_string(proconfig, ';'), '') from pg_proc "
            "where pronamespace = 'trioboss'::regnamespace"
        ).fetchall()

    assert {name for name, config in functions if HOUSE_PATH not in config} == set(QUALIFIED)


def test_no_function_is_everybodys(dsn):
    with psycopg.connect(dsn) as connection:
        open_to_all = connection.execute(
            "select proname from pg_proc p where pronamespace = 'trioboss'::regnamespace "
            "and (proacl is null or exists (select from aclexplode(proacl) a where a.grantee = 0))"
        ).fetchall()

    assert open_to_all == []


# Same names, same types, in a schema that comes before Postgres's own.
EVIL = """
create schema evil;
create domain evil.text as varchar;
create domain evil.int8 as numeric;
create function evil.trap(text, text) returns text language plpgsql as $$ begin raise 'led astray'; end $$;
create function evil.trap(bigint, bigint) returns bigint language plpgsql as $$ begin raise 'led astray'; end $$;
create function evil.hashtextextended(text, bigint) returns bigint language plpgsql
as $$ begin raise 'led astray'; end $$;
create function evil.trap(double precision, double precision) returns double precision language plpgsql
as $$ begin raise 'led astray'; end $$;
create function evil.is_trap(text, text) returns boolean language plpgsql as $$ begin raise 'led astray'; end $$;
create function evil.is_trap(integer, integer) returns boolean language plpgsql as $$ begin raise 'led astray'; end $$;
create function evil.is_trap(timestamptz, timestamptz) returns boolean language plpgsql
as $$ begin raise 'led astray'; end $$;
create function evil.clock_timestamp() returns timestamptz language plpgsql as $$ begin raise 'led astray'; end $$;
create function evil.gen_random_uuid() returns uuid language plpgsql as $$ begin raise 'led astray'; end $$;
create operator evil.|| (leftarg = text, rightarg = text, function = evil.trap);
create operator evil.& (leftarg = bigint, rightarg = bigint, function = evil.trap);
create operator evil.* (leftarg = double precision, rightarg = double precision, function = evil.trap);
create operator evil.= (leftarg = text, rightarg = text, function = evil.is_trap);
create operator evil.> (leftarg = integer, rightarg = integer, function = evil.is_trap);
create operator evil.> (leftarg = timestamptz, rightarg = timestamptz, function = evil.is_trap);
"""


def test_a_function_whose_names_are_qualified_ignores_the_search_path(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        calls = "select " + ", ".join(QUALIFIED.values())
        plain = connection.execute(calls).fetchone()
        connection.execute(EVIL)
        connection.execute("set search_path = evil, pg_catalog")
        with pytest.raises(psycopg.errors.RaiseException, match="led astray"):
            connection.execute("select 'a'::pg_catalog.text || 'b'::pg_catalog.text")  # the trap works

        assert connection.execute(calls).fetchone() == plain


def use_it(dsn):
    """Send, take, settle, retry, throttle, load and count."""
    with trioboss.SyncBoss(dsn) as boss:
        boss.create_queue("letters")
        boss.create_queue("q", policy="key_strict_fifo", dead_letter="letters", retry_limit=0, partition=True)
        boss.create_queue("plain", retry_backoff=True, retry_delay=1, retry_limit=1)
        boss.send("q", 1, singleton_key="a")
        boss.send_throttled("plain", 2, 60, "k")
        boss.send_debounced("plain", 2, 60, "k")
        boss.send_after("plain", 3, 60)
        boss.insert("plain", [{"data": 1}, {"data": 2, "priority": 5}, {"singleton_key": "x"}])
        boss.insert("q", [{"singleton_key": "b"}])
        boss.fail("q", boss.fetch("q"), "no")
        boss.fail("plain", boss.fetch("plain"), "no")
        boss.complete("plain", boss.fetch("plain"))
        for queue in ("q", "plain"):
            boss.get_queue_stats(queue)
            boss.find_jobs(queue)
        return boss.get_queue_stats("letters").queued


def fill_with_decoys(attacker):
    """Temporary tables of the same names as ours, in a path that finds them first."""
    tables = attacker.execute(
        "select relname from pg_class where relnamespace = 'trioboss'::regnamespace and relkind in ('r', 'p')"
    ).fetchall()
    for (table,) in tables:
        attacker.execute(
            SQL("create temporary table {0} (like trioboss.{0} including defaults)").format(Identifier(table))
        )
    attacker.execute("set search_path = pg_temp, trioboss")
    return [Identifier(table) for (table,) in tables]


def test_temporary_tables_are_never_taken_for_ours(dsn):
    with trioboss.SyncBoss(dsn) as boss, psycopg.connect(dsn, autocommit=True) as attacker:
        decoys = fill_with_decoys(attacker)
        boss.create_queue("letters", conn=attacker)
        boss.create_queue("q", policy="key_strict_fifo", dead_letter="letters", retry_limit=0, conn=attacker)
        boss.send("q", singleton_key="a", id="018f0000-0000-7000-8000-000000000001", conn=attacker)
        attacker.execute("insert into trioboss.job (name, singleton_key) values ('q', 'b')")
        for job in boss.fetch("q", batch_size=2):
            boss.fail("q", job, "no", conn=attacker)
        attacker.execute("select trioboss.add_days(current_date + 30, 1)")
        attacker.execute("select trioboss.add_stage('load', 'stage_' || md5('x'))")
        fooled = [
            decoy.as_string()
            for decoy in decoys
            if attacker.execute(SQL("select from pg_temp.{} limit 1").format(decoy)).fetchone() is not None
        ]

        assert fooled == []
        assert boss.get_queue_stats("letters").queued == 2
        assert sorted(boss.get_blocked_keys("q")) == ["a", "b"]


@pytest.fixture
def trapped_dsn(dsn):
    """A database where anybody may create what they like in public, and somebody did."""
    with psycopg.connect(dsn, autocommit=True) as attacker:
        attacker.execute(Path(__file__).with_name("traps.sql").read_bytes())
        with pytest.raises(psycopg.errors.RaiseException, match="led astray"):
            attacker.execute("select hashtextextended('a', 1)")  # the traps work
    return dsn


def test_overloads_in_public_are_never_taken_for_postgress_own(trapped_dsn):
    assert use_it(trapped_dsn) == 1


async def test_a_whole_boss_is_not_led_astray_by_overloads_either(trapped_dsn):
    async def handler(job):
        return job.data

    with trio.fail_after(30):
        async with trioboss.open_boss(trapped_dsn) as boss, record(boss.events()) as recorder:
            await boss.create_queue("q")
            await boss.work("q", handler)
            await boss.schedule("q", "* * * * * *")
            await boss.wait_for("q", await boss.send("q", 1, start_after=0.1))
            await recorder.wait_for(TickFired)

            assert recorder.of(ErrorEvent) == []


def test_a_migration_is_not_led_astray(empty_dsn):
    with psycopg.connect(empty_dsn, autocommit=True) as attacker:
        attacker.execute(Path(__file__).with_name("traps.sql").read_bytes())

    assert use_it(empty_dsn) == 1


async def test_your_own_statements_find_your_own_tables(boss):
    """Your sessions search a path that ours do not: in a transaction of the boss the path is yours."""
    async with boss.transaction() as conn:
        await conn.execute("create table mine (x int)")
        await conn.execute("insert into public.mine values (1)")
        assert await (await conn.execute("select x from mine")).fetchone() == (1,)
