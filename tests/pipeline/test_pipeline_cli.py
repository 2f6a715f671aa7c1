"""The command line of the pipeline: short errors, exit codes, help, and no Spark before it is needed."""

import subprocess
import sys

import pytest

from trioboss.cli import main, pipeline


def python(code):
    return subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)


JOBS = ["archive", "report", "audit", "load", "capacity", "synth"]


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
def test_what_cannot_be_asked_is_exit_code_2(arguments, problem, capsys):
    assert main(["pipeline", "audit", *arguments]) == 2

    assert problem in capsys.readouterr().err


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


def test_what_spark_says_is_told_in_one_line():
    trace = "Traceback (most recent call last):\n  x\ntrioboss.errors.UsageError: dsn: no"
    deep = f"[PYTHON_DATA_SOURCE_ERROR] Failed\n{trace}"

    assert pipeline._explain(deep) == "dsn: no"
    assert pipeline._explain("[PATH_NOT_FOUND] no such path\nat java") == "[PATH_NOT_FOUND] no such path"
    java = "An error occurred while calling o67.listFiles.\n: java.io.IOException: disk full\n\tat java"
    assert pipeline._explain(java) == "java.io.IOException: disk full"
