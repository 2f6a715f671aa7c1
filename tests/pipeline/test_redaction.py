"""Fields that exports and the option `redact` leave out of payloads of any shape."""

import json

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lake_steps import NoSpark, do_without_spark
from pipeline_helpers import end_jobs

from trioboss.errors import UsageError
from trioboss.pipeline import archive, erase
from trioboss.pipeline.batch_reader import BatchReader
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.files import open_files
from trioboss.pipeline.manifest import Manifest
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.redaction import check_columns, columns_left_out, parse_redact, without_field

NAMES = st.sampled_from(["a", "b", "0", "1", "a'b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def connection(server_dsn):
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        yield connection


def without(value, path, in_array=False):
    """The same by Python."""
    name, *rest = path
    if isinstance(value, dict) and name in value:
        if not rest:
            return {key: each for key, each in value.items() if key != name}
        return value | {name: without(value[name], rest)}
    if isinstance(value, list) and name.isdigit():
        place = int(name)
        if place >= len(value):
            return value
        changed = [without(value[place], rest)] if rest else []
        return [*value[:place], *changed, *value[place + 1 :]]
    if isinstance(value, list):
        return [] if in_array else [without(each, path, in_array=True) for each in value]
    return value


@settings(suppress_health_check=list(HealthCheck))
@given(value=VALUES, path=st.lists(NAMES, min_size=1, max_size=4))
@example(value={"a": [{"b": 1}, [{"b": 1}], 2]}, path=["a", "b"])
@example(value=["x"], path=["a", "b"])
@example(value={"a": {"b": [1]}}, path=["a", "b", "a"])
def test_a_field_is_left_out_wherever_the_path_leads_to_it(connection, value, path):
    statement = f"select {without_field('t.data', path)} from (select %s::jsonb) t (data)"

    ((found,),) = connection.execute(statement, [json.dumps(value)]).fetchall()

    assert found == without(value, path)


@settings(suppress_health_check=list(HealthCheck))
@given(value=VALUES, path=st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=3))
def test_no_object_that_the_path_leads_to_keeps_the_field(connection, value, path):
    """Also where arrays are in between."""
    statement = f"select {without_field('t.data', path)} from (select %s::jsonb) t (data)"
    ((found,),) = connection.execute(statement, [json.dumps(value)]).fetchall()

    *_, last = path
    ((left,),) = connection.execute(
        "select count(*) from jsonb_path_query(%s::jsonb, ('lax $.' || %s)::jsonpath)",
        [json.dumps(found), ".".join(path)],
    ).fetchall()
    assert left == 0, last


def test_a_payload_of_any_shape_can_be_read_with_fields_left_out(dsn, database):
    """Postgres's own operator raises an error for arrays, and then no export would get past this row."""
    end_jobs(database, 1)
    payload = {"lines": [{"email": "ann@x.org", "n": 1}, "ann"]}
    database.execute("update trioboss.archive set data = %s::jsonb", [json.dumps(payload)])
    options = ReadOptions.parse({"dsn": dsn, "redact": "data.lines.email, data.lines.n.x", "columns": "data"})
    reader = BatchReader(options, TABLES["archive"].schema(options.columns))

    (row,) = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]

    assert json.loads(row["data"]) == {"lines": [{"n": 1}, "ann"]}


# -- columns


def test_the_columns_that_are_not_chosen_are_left_out_but_for_those_that_are_needed():
    left_out = columns_left_out(("state", "error"), TABLES["archive"])

    assert {"data", "output", "worker", "singleton_key"} <= set(left_out)
    assert not {"state", "id", "queue", "xid", "completed_on", "source_id", "redriven_from"} & set(left_out)
    assert columns_left_out(("state", "error"), TABLES["attempt"]) == (
        "attempt",
        "worker",
        "started_on",
        "outcome",
        "singleton_key",
    )


@pytest.fixture
def asked(monkeypatch):
    """The options with which exports read each table."""
    do_without_spark(monkeypatch)
    asked = {}

    def write(export, table, count, end, staging, progress):
        asked[table] = export.leaves_out(table)
        return 0

    monkeypatch.setattr("trioboss.pipeline.export.LakeExport._write", write)
    monkeypatch.setattr("trioboss.pipeline.export.rows_by_folder", lambda files: {"jobs": 0, "attempts": 0})
    return asked


def test_a_lake_keeps_the_choice_of_columns_for_later_exports(dsn, database, tmp_path, asked):
    end_jobs(database, 1)
    archive(dsn, tmp_path, spark=NoSpark(), columns=["state", "data", "state"], redact=["data.email"])
    assert {"data.email", "output"} <= set(asked.pop("archive"))
    end_jobs(database, 1)

    archive(dsn, tmp_path, spark=NoSpark())

    assert {"data.email", "output"} <= set(asked["archive"])
    assert not {"data", "state"} & set(asked.pop("archive"))
    identity = Manifest(open_files(None, tmp_path)).identity()
    assert (identity.columns, identity.redact) == (("data", "state"), ("data.email",))
    end_jobs(database, 1)
    archive(dsn, tmp_path, spark=NoSpark(), columns=[], redact=[])
    assert asked["archive"] == ()


def test_a_column_that_no_table_has_is_refused():
    with pytest.raises(UsageError, match="columns: there is no column 'colour'"):
        check_columns(["data", "colour"])


@pytest.mark.parametrize("choice", [{"redact": ["singleton_key"]}, {"columns": ["data"]}])
def test_an_erasure_by_key_is_refused_if_the_lake_does_not_have_keys(
    dsn, database, tmp_path, monkeypatch, choice
):
    do_without_spark(monkeypatch)
    archive(dsn, tmp_path, spark=NoSpark(), **choice)

    with pytest.raises(
        UsageError, match=r"key: exports leave singleton_key out of .*: name the jobs by their ids"
    ):
        erase(dsn, "email", key="key1", lake=tmp_path, spark=NoSpark())


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("source_id", "redact: source_id is needed"),
        ("data..x", r"redact: 'data\.\.x' has an empty name in it"),
        ("data.", r"redact: 'data\.' has an empty name in it"),
    ],
)
def test_a_column_that_cannot_be_left_out_is_refused(entry, problem):
    with pytest.raises(UsageError, match=problem):
        parse_redact([entry], TABLES["archive"])
