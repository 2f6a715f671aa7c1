"""Payloads as columns, and what exports leave out."""

import json

import pytest
from pipeline_helpers import end_jobs, fail_attempts

from trioboss.errors import UsageError
from trioboss.pipeline import archive, count_payloads, read_lake, type_payload
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.files import open_files
from trioboss.pipeline.manifest import Manifest
from trioboss.pipeline.redaction import parse_redact

SCHEMA = "order bigint, email string, lines array<string>"


def put(database, *payloads):
    """Ended jobs with these payloads."""
    end_jobs(database, len(payloads))
    rows = database.execute("select id from trioboss.archive order by seq").fetchall()
    for (id,), payload in zip(rows, payloads, strict=True):
        database.execute(
            "update trioboss.archive set data = %s::jsonb, output = %s::jsonb where id = %s",
            [
                None if payload is None else json.dumps(payload),
                json.dumps({"sent": True, "to": "ann@x.org"}),
                id,
            ],
        )


PAYLOADS = (
    {"order": 1, "email": "ann@x.org", "lines": ["a", "b"]},
    {"order": 2},
    {"order": "three", "email": "bob@x.org"},
    {"order": 4, "colour": "red"},
    [1, 2],
    "text",
    None,
)


def test_payloads_become_columns_and_those_that_do_not_fit_are_rescued(spark, dsn, database):
    put(database, *PAYLOADS)
    rows = spark.read.format("trioboss").options(dsn=dsn).load()

    typed = type_payload(rows, "email", SCHEMA)
    found = {
        row["data"]: (
            row["data_order"],
            row["data_email"],
            row["data_lines"],
            row["data_rescued"] is not None,
        )
        for row in typed.collect()
    }

    expected = [
        (1, "ann@x.org", ["a", "b"], False),
        (2, None, None, False),
        (None, "bob@x.org", None, True),
        (4, None, None, True),
        (None, None, None, True),
        (None, None, None, True),
        (None, None, None, False),
    ]
    by_text = {
        None if text is None else json.dumps(json.loads(text)): values for text, values in found.items()
    }
    for payload, values in zip(PAYLOADS, expected, strict=True):
        text = None if payload is None else json.dumps(payload)
        assert (
            next(v for t, v in by_text.items() if (t and json.loads(t)) == (text and json.loads(text)))
            == values
        )
    counts = count_payloads(typed)
    assert (counts.rows, counts.rescued) == (7, 4)
    assert type_payload(rows, "other", SCHEMA).count() == 0


def test_a_stream_and_a_lake_have_typed_payloads_too(spark, dsn, database, tmp_path):
    put(database, *PAYLOADS[:2])
    archive(dsn, tmp_path / "lake", spark=spark)
    stream = spark.readStream.format("trioboss").options(dsn=dsn).load()

    query = (
        type_payload(stream, "email", SCHEMA)
        .writeStream.format("memory").queryName("typed").option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    lake = type_payload(
        read_lake(spark, tmp_path / "lake"), "email", "sent boolean, to string", column="output"
    )

    assert sorted(row["data_order"] for row in spark.table("typed").collect()) == [1, 2]
    assert [(row["output_sent"], row["output_to"]) for row in lake.collect()] == [(True, "ann@x.org")] * 2


def test_a_schema_must_not_hide_a_column(spark, dsn):
    rows = spark.createDataFrame([("q", "{}", 1)], "queue string, data string, data_order int")

    with pytest.raises(UsageError, match="there is a column 'data_order' already"):
        type_payload(rows, "q", SCHEMA)


# -- redaction


def test_redacted_values_never_leave_the_database(spark, dsn, database, tmp_path):
    put(
        database, {"order": 1, "customer": {"email": "ann@x.org", "city": "Ulm"}}, ["ann@x.org"], "text", None
    )
    fail_attempts(database, 2)

    archive(dsn, tmp_path, spark=spark, redact=["data.customer.email", "data.0", "output", "error"])

    lake = read_lake(spark, tmp_path)
    assert sorted(row["data"] or "" for row in lake.collect()) == [
        "", '"text"', "[]", '{"order": 1, "customer": {"city": "Ulm"}}',
    ]  # fmt: skip
    assert lake.where("output is not null").count() == 0
    assert read_lake(spark, tmp_path, "attempt").where("error is not null").count() == 0
    assert b"ann@x.org" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.parquet"))


def test_a_lake_keeps_what_is_redacted_for_later_exports(spark, dsn, database, tmp_path):
    put(database, {"email": "ann@x.org"})
    archive(dsn, tmp_path, spark=spark, redact=["data.email", "output"])
    database.execute("insert into trioboss.archive select * from trioboss.archive")
    database.execute("update trioboss.archive set xid = pg_current_xact_id(), id = gen_random_uuid()")

    archive(dsn, tmp_path, spark=spark)

    identity = Manifest(open_files(spark, tmp_path)).identity()
    assert identity is not None
    assert identity.redact == ("data.email", "output")
    assert {row["data"] for row in read_lake(spark, tmp_path).collect()} == {"{}"}


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("colour", "redact: there is no column 'colour'"),
        ("queue", "redact: queue is needed"),
        ("singleton_key.x", "redact: singleton_key is not JSON, so it has no fields"),
    ],
)
def test_a_path_that_cannot_be_redacted_is_refused(entry, problem):
    with pytest.raises(UsageError, match=problem):
        parse_redact([entry], TABLES["archive"])
