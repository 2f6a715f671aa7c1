"""The command line of the pipeline: short errors, exit codes, help, and no Spark before it is needed."""

import os
import subprocess
import sys
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path

import pytest
from pipeline_helpers import end_jobs

from trioboss.cli import main, pipeline
from trioboss.pipeline.arguments import open_run
from trioboss.pipeline.database import open_database
from trioboss.pipeline.files import open_files
from trioboss.pipeline.manifest import Manifest
from trioboss.pipeline.progress import Progress


def python(code):
    return subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)


@pytest.fixture(autouse=True)
def same_priority(monkeypatch):
    """`pipeline archive` lowers the priority of its process: not that of the tests, which would keep it."""
    monkeypatch.setattr(os, "nice", lambda _: 0)


JOBS = ["archive", "compact", "erase", "report", "audit", "load", "capacity", "all", "synth"]


def test_the_help_lists_all_jobs(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["pipeline", "-h"])

    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert all(f"\n  {job} " in out for job in JOBS)


@pytest.mark.parametrize("job", JOBS)
def test_every_job_has_help_of_its_own(job, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["pipeline", job, "-h"])

    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: trioboss pipeline {job} ")
    assert "--master" in out
    assert "--conf" in out


@pytest.mark.parametrize(
    "arguments", [["nonsense"], [], ["report"], ["report", "--from", "yesterday", "--out", "x"]]
)
def test_a_mistake_in_the_arguments_is_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["pipeline", *arguments])

    assert stopped.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_lake_that_is_not_there_is_one_sentence(spark, tmp_path, capsys):
    assert main(["pipeline", "report", "--from-lake", str(tmp_path / "no"), "--out", str(tmp_path)]) == 2

    assert "there is no lake here" in capsys.readouterr().err


def test_a_setting_of_spark_without_a_value_is_exit_code_2(capsys):
    assert main(["pipeline", "audit", "--conf", "spark.ui.enabled"]) == 2

    assert "not of the form KEY=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--from", "2026-03-02", "--to", "2026-03-01"], "from, to: no time is between them"),
        (["--tolerance", "nan"], "tolerance: give a number of seconds"),
        (["--schema", "no-name"], "schema: 'no-name' is not a schema name"),
    ],
)
def test_impossible_arguments_are_exit_code_2(arguments, problem, capsys):
    assert main(["pipeline", "audit", *arguments]) == 2

    assert problem in capsys.readouterr().err


@pytest.fixture
def no_spark(monkeypatch):
    """Spark must not be started."""
    monkeypatch.setattr(
        "trioboss.pipeline.arguments.get_session", lambda *_: pytest.fail("Spark was started")
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["archive", "--to", "x", "--interval", "0"], "interval: 0 is not a number of more than 0"),
        (["archive", "--to", "x", "--wait", "-1"], "wait: -1 is not a number of 0 or more"),
        (["archive", "--to", "x", "--columns", "id,colour"], "columns: there is no column 'colour'"),
        (["archive", "--to", "x", "--conf", "x"], "conf: 'x' is not of the form KEY=VALUE"),
        (["archive", "--to", "x", "--master", "spark://x:1"], "a cluster cannot reach an embedded server"),
        (["report", "--out", "x", "--top", "0"], "top: 0 is not a number of more than 0"),
        (["report", "--out", "s3a://x/y"], "page: give a path for the page"),
        (["report", "--out", "x", "--from-lake", "y", "--dsn", "z"], "give a lake or a dsn, not both"),
        (["audit", "--queue", ""], "queue: "),
        (["capacity", "--target", "0"], "target: 0 is not a number of more than 0"),
        (["capacity", "--slots", "email"], "slots: 'email' is not of the form QUEUE=N"),
        (["all", "--out", "x", "--target", "nan"], "target: nan is not a number of more than 0"),
        (["load", "x.csv", "--queue", "q"], "x.csv: no such file"),
        (["load", __file__, "--queue", "q", "--map", "colour=x"], "map: 'colour' is no option of a job"),
        (["load", __file__, "--queue", "q", "--release-rate", "0"], "release-rate: 0 is not a number"),
        (
            ["load", "/etc/passwd", "--queue", "q"],
            "/etc/passwd: neither a table nor a file that ends in .parquet",
        ),
        (
            ["load", "pyproject.toml", "--queue", "q"],
            "pyproject.toml: neither a table nor a file that ends in",
        ),
        (["report", "--out", "x", "--from-lake", "nolake"], "nolake: there is no lake here"),
        (["all", "--out", "x", "--from-lake", "nolake"], "nolake: there is no lake here"),
        (["audit", "--from-lake", "nolake"], "nolake: there is no lake here"),
        (["capacity", "--from-lake", "nolake"], "nolake: there is no lake here"),
        (["compact", "--lake", "nolake"], "nolake: there is no lake here"),
        (["erase", "--lake", "nolake", "--queue", "q", "--key", "k"], "nolake: there is no lake here"),
        (["compact", "--lake", "x", "--keep-days", "0"], "keep-days: 0 is not a number of more than 0"),
        (["erase", "--lake", "x", "--queue", "q", "--id", "7"], "id: badly formed hexadecimal UUID string"),
        (["synth", "--to", "x", "--jobs", "-1"], "jobs: -1 is not a number of 0 or more"),
        (["synth", "--to", __file__, "--jobs", "1"], "is a file, not a folder"),
        (["synth", "--to", f"{__file__}/x", "--jobs", "1", "--load"], "is a file, not a folder"),
    ],
)
def test_a_wrong_argument_is_refused_before_spark_is_started(
    arguments, problem, no_spark, monkeypatch, capsys
):
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.delenv("TRIOBOSS_DSN", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)

    assert main(["pipeline", *arguments]) == 2

    assert problem in capsys.readouterr().err


def test_a_history_is_not_made_where_a_lake_is(no_spark, tmp_path, capsys):
    Manifest(open_files(None, tmp_path)).create(None)

    assert main(["pipeline", "synth", "--jobs", "1", "--to", str(tmp_path)]) == 2

    assert f"there is a lake at {tmp_path} already" in capsys.readouterr().err


@pytest.mark.parametrize("job", [["archive", "--to"], ["report", "--out"], ["all", "--out"]])
def test_a_folder_that_cannot_be_written_to_is_refused_before_spark_is_started(
    job, dsn, no_spark, tmp_path, capsys
):
    (tmp_path / "file").write_text("x")

    assert main(["pipeline", *job, str(tmp_path / "file"), "--dsn", dsn]) == 2
    assert "file: is a file, not a folder" in capsys.readouterr().err
    assert main(["pipeline", *job, "/proc/nowhere", "--dsn", dsn]) == 2
    assert "/proc/nowhere: the folder cannot be made" in capsys.readouterr().err


@pytest.mark.parametrize("dsn", ["postgresql://127.0.0.1:1/x", "nonsense://x"])
def test_a_database_that_cannot_be_used_is_reported_before_spark_is_started(dsn, no_spark, capsys):
    assert main(["pipeline", "audit", "--dsn", dsn]) in (1, 2)

    _, address = capsys.readouterr().err.splitlines()
    assert address.startswith("  ")


def test_without_a_dsn_the_embedded_server_is_used_and_migrated(dsn, no_spark, monkeypatch, capsys):
    """As by the rest of the command line. The server is that of the tests, with a schema that is not there yet."""
    began = []
    monkeypatch.delenv("TRIOBOSS_DSN", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr("trioboss.pipeline.arguments.resolve_dsn", lambda _: nullcontext(dsn))
    monkeypatch.setattr("trioboss.pipeline.arguments.get_session", lambda *_: began.append(True))
    given = Namespace(dsn=None, schema="fresh", master=None, conf=[], timings=True)

    with open_run(given) as run, open_database(dsn, "fresh"):
        assert run.dsn == dsn

    assert began == [True]
    printed = capsys.readouterr().err
    assert "no dsn was given: using the embedded server" in printed
    assert "reach the database" in printed
    assert "start Spark" in printed


@pytest.mark.soak
def test_report_audit_and_capacity_run_one_after_the_other(spark, dsn, database, tmp_path, capsys):
    end_jobs(database, 20)

    assert main(["pipeline", "all", "--dsn", dsn, "--out", str(tmp_path), "--timings"]) == 0

    printed = capsys.readouterr()
    assert str(tmp_path / "report.html") in printed.out
    assert "20 ended jobs, 0 attempts that did not complete: no violation" in printed.out
    assert "slots_needed" in printed.out
    steps = [line.split("%  ")[1] for line in printed.err.splitlines() if "%  " in line]
    assert {"start Spark", "hours", "page", "audit", "capacity", "other", "all"} <= set(steps)


def test_progress_tells_rows_rate_and_time_left():
    running = Progress("export jobs", done=2, total=8, seconds=10, expected=1000)

    assert str(running) == "export jobs  2/8 tasks  about 250 of 1,000 rows  25 rows/s  10.0 s  30 s left"
    assert str(Progress("export jobs", rows=1000, seconds=40, expected=1000)) == (
        "export jobs  1,000 rows  25 rows/s  40.0 s"
    )


def test_a_schema_that_is_not_there_is_one_sentence(spark, dsn, capsys):
    assert main(["pipeline", "audit", "--dsn", dsn, "--schema", "elsewhere"]) == 1

    assert "schema 'elsewhere' is not installed: run `trioboss migrate`" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_one_sentence(spark, dsn, tmp_path, capsys):
    missing = str(tmp_path / "missing.csv")

    assert main(["pipeline", "load", missing, "--queue", "email", "--dsn", dsn]) == 2

    assert f"{missing}: no such file" in capsys.readouterr().err


def test_a_database_that_is_not_there_is_one_sentence_without_the_password(spark, tmp_path, capsys):
    dsn = "postgresql://u:geheim@127.0.0.1:1/x"

    assert main(["pipeline", "audit", "--dsn", dsn]) == 1

    said = capsys.readouterr().err
    assert "prefer TRIOBOSS_DSN" in said
    assert "geheim" not in said
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 3


def test_without_the_extra_the_message_says_what_to_install(monkeypatch, capsys):
    def import_module(name):
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    monkeypatch.setattr(pipeline, "import_module", import_module)

    assert main(["pipeline", "audit"]) == 2
    assert "pip install 'trioboss[spark]'" in capsys.readouterr().err


def test_other_commands_do_not_import_spark():
    code = "import sys; from trioboss.cli import main; main(['migrate', '--plan', '-h'])"
    code = f"import atexit, sys; atexit.register(lambda: print('pyspark' in sys.modules)); {code}"

    assert python(code).stdout.endswith("False\n")


@pytest.mark.parametrize(
    ("arguments", "niceness", "code"),
    [
        (["archive"], [19], 0),
        (["archive", "--to", "x", "--nice=3"], [3], 0),
        (["archive", "--nice", "99"], [], 2),
        (["report"], [], 0),
    ],
)
def test_an_export_lowers_its_priority_before_anything_is_imported(arguments, niceness, code):
    program = f"""
import sys
from trioboss.cli import main
from trioboss.pipeline import low_priority
def lower(nice):
    if "trio" not in sys.modules:
        print("lowered:", nice)
low_priority.lower_priority = lower
main({["pipeline", *arguments, "--help"]})
"""

    ran = python(program)
    lowered = [line for line in ran.stdout.splitlines() if line.startswith("lowered")]

    assert lowered == [f"lowered: {each}" for each in niceness]
    assert ran.returncode == code


def test_an_error_of_spark_is_one_line():
    trace = "Traceback (most recent call last):\n  x\ntrioboss.errors.UsageError: dsn: no"
    deep = f"[PYTHON_DATA_SOURCE_ERROR] Failed\n{trace}"

    assert pipeline._explain(deep) == "dsn: no"
    assert pipeline._explain("[PATH_NOT_FOUND] no such path\nat java") == "[PATH_NOT_FOUND] no such path"
    java = "An error occurred while calling o67.listFiles.\n: java.io.IOException: disk full\n\tat java"
    assert pipeline._explain(java) == "java.io.IOException: disk full"
