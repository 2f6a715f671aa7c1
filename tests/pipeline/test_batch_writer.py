"""The sink: bulk loads through Spark."""

import json
from datetime import UTC, datetime
from uuid import UUID, uuid4

import attrs
import psycopg
import pyarrow as pa
import pytest
from writer_helpers import batch, jobs_in, options_of, schema_of, shape_of, stage, stages_in

from trioboss.errors import UsageError
from trioboss.pipeline.batch_writer import BatchWriter
from trioboss.pipeline.database import open_database
from trioboss.pipeline.ids import Ids
from trioboss.pipeline.options import WriteOptions
from trioboss.pipeline.releasing import LoadRefused, release

# -- through Spark


def test_a_dataframe_becomes_jobs_once_however_often_it_is_written(spark, dsn, database, sync_boss):
    sync_boss.create_queue("email", retry_limit=7)
    rows = spark.range(100, numPartitions=3).selectExpr(
        "concat('{\"n\": ', id, '}') as data",
        "int(id % 5) as priority",
        "timestamp'2031-01-01 00:00:00Z' as start_after",
    )

    for _ in range(2):
        rows.write.format("trioboss").options(dsn=dsn, queue="email", loadId="one").mode("append").save()

    found = jobs_in(database, "(data ->> 'n')::int, priority, retry_limit, start_after::text")
    assert [(n, priority) for n, priority, _, _ in found] == [(n, n % 5) for n in range(100)]
    assert {(limit, start[:10]) for _, _, limit, start in found} == {(7, "2031-01-01")}
    assert stages_in(database) == []


def test_any_dataframe_is_a_payload_and_a_task_that_failed_leaves_nothing(spark, dsn, database, sync_boss):
    sync_boss.create_queue("email")
    rows = (
        spark.range(4, numPartitions=2)
        .selectExpr(
            "id",
            "array(id, id + 1) as list",
            "named_struct('a', date'2031-01-01') as nested",
            "map('k', 1.5D) as map",
        )
        .withColumnRenamed("id", "n")
    )
    failing = rows.coalesce(1).selectExpr("if(n = 3, raise_error('on purpose'), n) as n")
    target = {"dsn": dsn, "queue": "email"}

    with pytest.raises(Exception, match="on purpose"):
        failing.write.format("trioboss").options(**target, loadId="load").mode("append").save()
    assert jobs_in(database) == []

    # The process of the task that failed may make its stage after the load was given up: the next try removes it.
    rows.write.format("trioboss").options(**target, loadId="load").mode("append").save()
    assert stages_in(database) == []
    assert jobs_in(database)[3] == (
        {"n": 3, "list": [3, 4], "nested": {"a": "2031-01-01"}, "map": {"k": 1.5}},
    )


# -- a load, without Spark


def test_rows_that_a_second_attempt_of_a_task_staged_are_never_released(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    options = options_of(dsn)
    _, second = stage(options, batch({"data": "1"}), batch({"data": "1"}))

    load = release(options, [second])

    assert (load.state, load.staged, load.released) == ("released", 1, 1)
    assert jobs_in(database) == [(1,)]
    assert stages_in(database) == []


def test_a_load_that_was_released_is_not_released_again(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    options = options_of(dsn)

    for n in range(3):
        release(options, stage(options, batch({"data": str(n)})))

    assert jobs_in(database) == [(0,)]
    assert stages_in(database) == []


def test_rows_that_were_lost_with_the_server_are_missed(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    options = options_of(dsn)
    (staged,) = stage(options, batch({"data": "1"}, {"data": "2"}))
    database.execute(f"truncate trioboss.{staged.table}")

    with pytest.raises(Exception, match="2 rows were staged, 0 are there"):
        release(options, [staged])

    assert jobs_in(database) == []


BAD = [
    ({"data": "{"}, "data: not JSON"),
    ({"data": '{"a": "\\u0000"}'}, "data: unsupported Unicode escape sequence"),
    ({"data": "NaN"}, "data: not JSON: NaN is no number"),
    ({"data": "[" * 100_000}, "data: "),
    ({"singleton_key": ""}, "singleton_key: '' is not a key"),
    ({"singleton_key": "k" * 1001}, "singleton_key: the key has 1001 bytes"),
    ({"singleton_key": "\0"}, "singleton_key: a key cannot contain the NUL character"),
    ({"id": "nobody"}, "id: 'nobody' is not a UUID"),
    ({"priority": "high"}, "priority: 'high' is not a whole number"),
    ({"start_after": "soon"}, "start_after: 'soon'"),
    ({"retry_limit": "-1"}, "retry_limit: -1 is not a whole number"),
    ({"expire_in": "long"}, "expire_in: 'long' is not a duration"),
    ({"dead_letter": "nowhere"}, "dead_letter: queue nowhere does not exist"),
]
ALL = (
    "data string, id string, priority string, start_after string, singleton_key string, retry_limit string, "
)
ALL += "expire_in string, dead_letter string"
EMPTY = {name.split()[0]: None for name in ALL.split(", ")}
MIXED = [{**EMPTY, **row, "data": row.get("data", "1")} for row, _ in BAD]
SCHEMA = pa.schema([(name, pa.string()) for name in EMPTY])


def test_one_bad_row_and_nothing_is_loaded_and_every_reason_is_known(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    options = options_of(dsn)
    good = {**EMPTY, "data": "0"}
    rows = pa.RecordBatch.from_pylist([good, *MIXED, good], SCHEMA)

    with pytest.raises(LoadRefused, match=r"13 of 15 rows cannot be jobs.*\n  row 1: data: not JSON"):
        release(options, stage(options, rows, shape=shape_of(ALL)))

    found = database.execute("select position, problem from trioboss.rejected order by position").fetchall()
    assert [position for position, _ in found] == list(range(1, 14))
    for (_, problem), (_, expected) in zip(found, BAD, strict=True):
        assert problem.startswith(expected)
    assert (jobs_in(database), stages_in(database)) == ([], [])


def test_an_instant_that_no_job_can_have_is_a_bad_row(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    options = options_of(dsn, badRows="aside")
    starts = [datetime(year, 12, 31, tzinfo=UTC) for year in (2031, 9999, 1)]
    schema = pa.schema([("data", pa.string()), ("start_after", pa.timestamp("us", "UTC"))])
    rows = pa.RecordBatch.from_pylist([{"data": "1", "start_after": start} for start in starts], schema)

    load = release(options, stage(options, rows))

    assert (load.released, load.rejected) == (1, 2)
    (far,), (past,) = database.execute("select problem from trioboss.rejected order by position").fetchall()
    assert far.endswith("is too far away: use an instant before 2200")
    assert past.endswith("is too long ago: use an instant after 1900")


def test_with_bad_rows_aside_the_good_ones_are_loaded(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    options = options_of(dsn, badRows="aside")
    first = batch({"data": "1"}, {"data": "{"}, {"data": "3"})
    second = batch({"data": "4"}, {"data": "}"})

    load = release(options, stage(options, first, second))

    assert (load.staged, load.released, load.rejected, load.left_out) == (5, 3, 2, 0)
    assert jobs_in(database) == [(1,), (3,), (4,)]
    rejected = database.execute("select position, job from trioboss.rejected order by position").fetchall()
    assert rejected == [(1, {"data": "{"}), (4, {"data": "}"})]


def test_a_refused_load_can_be_mended_and_run_again(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    options = options_of(dsn)
    with pytest.raises(LoadRefused):
        release(options, stage(options, batch({"data": "{"})))

    assert release(options, stage(options, batch({"data": "{}"}))).released == 1
    assert database.execute("select count(*) from trioboss.rejected").fetchone() == (0,)


def test_a_dry_run_loads_nothing_and_does_not_stand_in_the_way(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    dry = options_of(dsn, dryRun="true")

    assert release(dry, stage(dry, batch({"data": "1"}, {"data": "{"}))).state == "checked"
    assert (jobs_in(database), stages_in(database)) == ([], [])
    assert release(options_of(dsn), stage(dry, batch({"data": "1"}))).released == 1


@pytest.mark.parametrize("policy", ["short", "stately", "exclusive", "singleton", "key_strict_fifo"])
def test_policies_hold_for_a_load(dsn, database, sync_boss, policy):
    sync_boss.create_queue("email", policy=policy)
    options = options_of(dsn)
    parts = [
        batch({"data": "1", "singleton_key": "a"}, {"data": "2", "singleton_key": "b"}),
        batch({"data": "3", "singleton_key": "a"}),
    ]

    load = release(options, stage(options, *parts))

    unique = policy in ("short", "stately", "exclusive")
    assert (load.released, load.left_out) == ((2, 1) if unique else (3, 0))
    assert [n for (n,) in jobs_in(database)] == ([1, 2] if unique else [1, 2, 3])
    started = [job.data for job in sync_boss.fetch("email", batch_size=10)]
    assert sorted(started) == [1, 2]


def test_a_load_takes_the_locks_of_its_keys_in_strict_fifo(dsn, database, sync_boss):
    sync_boss.create_queue("email", policy="key_strict_fifo")
    options = options_of(dsn)
    (staged,) = stage(options, batch({"data": "1", "singleton_key": "a"}))
    with open_database(dsn) as pipeline, pipeline.transaction():
        pipeline.run("lock_keys_of_stage", of={"stage_row": staged.table}, queue="email")
        held = database.execute(
            "select pg_try_advisory_lock(trioboss.key_lock('email', 'a', seed)) from trioboss.lock_seed"
        ).fetchone()

    assert held == (False,)


def test_strict_fifo_wants_keys(dsn, sync_boss):
    sync_boss.create_queue("email", policy="key_strict_fifo")
    options = options_of(dsn)

    with pytest.raises(LoadRefused, match="row 0: singleton_key: key_strict_fifo queues require one"):
        release(options, stage(options, batch({"data": "1"}), shape=shape_of("data string", needs_key=True)))


def test_jobs_start_no_faster_than_the_release_rate(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    options = options_of(dsn, releaseRate="2")

    release(options, stage(options, *(batch({"data": "1"}, {"data": "2"}, {"data": "3"}) for _ in range(2))))

    gaps = "extract(epoch from start_after - min(start_after) over ())::float8"
    assert [gap for (gap,) in jobs_in(database, gaps)] == [0, 0.5, 1, 1.5, 2, 2.5]
    assert len(sync_boss.fetch("email", batch_size=10)) < 6


def test_an_id_is_one_job_whether_it_waits_or_has_ended(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    ended, waiting, new = (str(uuid4()) for _ in range(3))
    sync_boss.send("email", "ended", id=ended)
    sync_boss.complete("email", [job.id for job in sync_boss.fetch("email")])
    sync_boss.send("email", "waiting", id=waiting)
    options = attrs.evolve(options_of(dsn), has_ids=True)

    rows = batch(*({"id": id, "data": '"loaded"'} for id in (ended, waiting, new, new)))
    load = release(options, stage(options, rows))

    assert (load.released, load.left_out) == (1, 3)
    assert jobs_in(database) == [("waiting",), ("loaded",)]


def test_a_queue_with_a_table_of_its_own_is_loaded_there(dsn, database, sync_boss):
    sync_boss.create_queue("email", partition=True)
    options = options_of(dsn)

    release(options, stage(options, batch({"data": "1"})))

    assert database.execute("select count(*) from trioboss.live_job_common").fetchone() == (0,)
    assert [job.data for job in sync_boss.fetch("email")] == [1]


def test_made_ids_are_valid_and_differ_even_between_attempts_of_one_task():
    attempts = [Ids.of_task(1_900_000_000.0, 7) for _ in range(20)]

    ids = {id for attempt in attempts for first in (0, 500) for id in attempt.make(first, 500)}

    assert len(ids) == 20_000
    assert {(id[6] >> 4, id[8] >> 6) for id in ids} == {(7, 2)}
    assert {UUID(bytes=id).int >> 80 for id in ids} == {1_900_000_000_000}


def test_made_ids_of_a_load_are_in_its_order():
    tasks = [Ids.of_task(1_900_000_000.0, number) for number in range(3)]

    ids = [id for task in tasks for first in (0, 10) for id in task.make(first, 10)]

    assert ids == sorted(ids)


def test_rows_of_many_kinds_of_options_are_as_if_sent(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    sync_boss.create_queue("dead")
    options = options_of(dsn)
    columns = {"retry_limit": "9", "retry_backoff": "true", "expire_in": "1.5", "dead_letter": "dead"}
    ddl = "data string, " + ", ".join(f"{name} string" for name in columns)

    release(options, stage(options, batch({"data": "1", **columns}), shape=shape_of(ddl)))
    sync_boss.send("email", 1, retry_limit=9, retry_backoff=True, expire_in=1.5, dead_letter="dead")

    loaded, sent = jobs_in(
        database, "data, retry_limit, retry_backoff, retry_jitter, expire_in, dead_letter, policy"
    )
    assert loaded == sent


@pytest.mark.parametrize(
    ("ddl", "problem"),
    [
        ("data string, colour string", "colour: no such option of a job"),
        ("singleton_seconds integer", "singleton_seconds: throttled jobs cannot be loaded in bulk"),
        ("data string, priority date", "priority: date is of the wrong type"),
    ],
)
def test_columns_that_cannot_be_jobs_are_refused_at_once(ddl, problem):
    with pytest.raises(UsageError, match=problem):
        shape_of(ddl)


def test_mistakes_are_told_before_any_row_is_read(dsn, sync_boss):
    sync_boss.create_queue("email")
    schema = schema_of("data string")

    with pytest.raises(UsageError, match="queue 'nowhere' does not exist"):
        BatchWriter(options_of(dsn, "nowhere"), schema, False)
    with pytest.raises(UsageError, match="mode: jobs can only be appended"):
        BatchWriter(options_of(dsn), schema, True)
    with pytest.raises(UsageError, match="queue: name the queue that gets the jobs"):
        WriteOptions.parse({"dsn": dsn})
    release(options_of(dsn), [])
    sync_boss.create_queue("other")
    with pytest.raises(UsageError, match="loadId: 'one' was loaded into the queue 'email'"):
        BatchWriter(options_of(dsn, "other"), schema, False)


def test_a_stage_that_somebody_still_writes_to_is_left_alone_and_swept_up_later(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    options = options_of(dsn)
    first, late = stage(options, batch({"data": "1"}), batch({"data": "1"}))
    with psycopg.connect(dsn) as writer:
        writer.execute(f"lock table trioboss.{late.table} in row exclusive mode")
        assert release(options, [first]).released == 1
    assert stages_in(database) == [(late.table,)]

    release(options, [])

    assert stages_in(database) == []


def test_a_bad_row_is_kept_as_it_came_whatever_is_in_it(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    options = options_of(dsn, badRows="aside")
    row = {"data": "{", "singleton_key": 'quote " back \\ nul \0 snow ☃'}

    release(options, stage(options, batch(row)))

    ((came,),) = database.execute("select job from trioboss.rejected").fetchall()
    assert json.loads(json.dumps(came)) == {
        **row,
        "singleton_key": row["singleton_key"].replace("\0", "\ufffd"),
    }
