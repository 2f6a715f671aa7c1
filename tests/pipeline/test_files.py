"""Files by means of Hadoop and, for Spark Connect, of pyarrow: both do the same."""

import hashlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trioboss.pipeline.files import Files, _ArrowFiles


@pytest.fixture(params=["Hadoop", "pyarrow"])
def open_at(request):
    if request.param == "pyarrow":
        return _ArrowFiles
    spark = request.getfixturevalue("spark")
    return lambda root: Files(spark, root)


def test_json_is_written_whole_and_a_file_that_is_there_stays(open_at, tmp_path):
    files = open_at(tmp_path / "a b%20c")

    files.write("x/one.json", {"n": 1})
    files.write("x/one.json", {"n": 2})

    assert files.read("x/one.json") == {"n": 1}
    assert [name for name in files.names("x") if not name.endswith(".crc")] == ["one.json"]
    assert json.loads((tmp_path / "a b%20c" / "x" / "one.json").read_text()) == {"n": 1}


def test_a_file_is_moved_once_and_a_move_without_source_and_target_is_an_error(open_at, tmp_path):
    files = open_at(tmp_path)
    (tmp_path / "source").write_text("1")

    files.move("source", "folder/target")
    files.move("source", "folder/target")

    assert (tmp_path / "folder" / "target").read_text() == "1"
    assert not files.exists("source")
    with pytest.raises(FileNotFoundError, match="is gone"):
        files.move("source", "elsewhere")


def test_a_target_that_is_there_stays_and_the_source_goes(open_at, tmp_path):
    for name in ("source", "target"):
        (tmp_path / name).write_text(name)

    open_at(tmp_path).move("source", "target")

    assert (tmp_path / "target").read_text() == "target"
    assert not (tmp_path / "source").exists()


def test_names_and_files_below_a_folder_are_listed(open_at, tmp_path):
    (tmp_path / "f" / "g").mkdir(parents=True)
    for name in ("b.parquet", "a.json", "g/c.parquet"):
        (tmp_path / "f" / name).write_bytes(b"123")
    files = open_at(tmp_path)

    assert files.names("f") == ["a.json", "b.parquet", "g"]
    assert files.names("none") == []
    found = [(file.path, file.bytes) for file in files.walk("f", ".parquet")]
    assert sorted(found) == [("b.parquet", 3), ("g/c.parquet", 3)]
    assert list(files.walk("none", "")) == []


def test_a_folder_and_a_file_are_deleted_and_what_is_not_there_is_no_error(open_at, tmp_path):
    (tmp_path / "f" / "g").mkdir(parents=True)
    (tmp_path / "h").write_text("1")
    files = open_at(tmp_path)

    for name in ("f", "h", "none"):
        files.delete(name)

    assert list(tmp_path.iterdir()) == []


def test_a_pattern_matches_files_and_those_below_folders(open_at, tmp_path):
    (tmp_path / "rows.csv").mkdir()
    (tmp_path / "deeper").mkdir()
    for name in (
        "rows.csv/part-0",
        "rows.csv/_SUCCESS",
        "rows.csv/.crc",
        "one.csv",
        "other.txt",
        "deeper/x.csv",
    ):
        (tmp_path / name).write_text(name)

    found = [file.path.rpartition(f"{tmp_path}/")[2] for file in open_at(tmp_path / "*.csv").matching()]

    assert found == ["one.csv", "rows.csv/part-0"]
    assert len(open_at(tmp_path / "one.csv").matching()) == 1
    with pytest.raises(FileNotFoundError):
        open_at(tmp_path / "*.json").matching()


def test_digests_and_rows_are_those_of_the_content(open_at, tmp_path):
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "x.parquet")
    files = open_at(tmp_path / "x.parquet")
    (found,) = files.matching()

    assert files.digest(found.path) == hashlib.sha256((tmp_path / "x.parquet").read_bytes()).hexdigest()
    assert open_at(tmp_path).count_rows("x.parquet") == 3


def test_a_file_that_hadoop_wrote_can_be_replaced_by_pyarrow(spark, tmp_path):
    """Hadoop keeps a checksum beside it."""
    hadoop, arrow = Files(spark, tmp_path), _ArrowFiles(tmp_path)
    hadoop.write("one.json", {"n": 1})

    arrow.delete("one.json")
    arrow.write("one.json", {"n": 22})

    assert hadoop.read("one.json") == {"n": 22}
