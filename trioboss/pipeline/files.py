"""Files of a lake, in any file system that Hadoop reaches: of this machine, in HDFS, in an object store.

A session of Spark Connect has no Hadoop here, and neither has a program without Spark. Then pyarrow reaches the files:
of this machine, which the server must see at the same place, or in an object store.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import SparkSession

from trioboss.errors import UsageError
from trioboss.pipeline.remote import is_remote

__all__ = ["UNFINISHED", "Files", "FoundFile", "check_folder", "is_local", "open_files", "plain_address"]

UNFINISHED = ".unfinished"
"""The end of the name of a file that is being written."""
_TRIES = 5


@attrs.frozen
class FoundFile:
    """A file that was found."""

    path: str
    """Relative to the folder in which it was searched for, or the whole address."""
    bytes: int


class Files:
    """The files below a folder. All paths are relative to it."""

    root: str
    """The address of the folder, for Spark."""

    def __init__(self, spark: SparkSession, root: str | Path) -> None:
        text = _with_scheme(root)
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        root_path = self._path(text)
        self._conf = spark._jsc.hadoopConfiguration()
        self._system = root_path.getFileSystem(self._conf)
        self._root = self._system.makeQualified(root_path)
        self.root: str = str(self._root.toString())

    def at(self, path: str) -> str:
        """The whole address of a path, for Spark."""
        return f"{self.root}/{path}"

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return bool(self._system.exists(self._of(path)))

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        if not self.exists(folder):
            return []
        return sorted(status.getPath().getName() for status in self._system.listStatus(self._of(folder)))

    def walk(self, folder: str, suffix: str) -> Iterator[FoundFile]:
        """The files in a folder and all folders below it whose names end like this."""
        if not self.exists(folder):
            return
        found = self._system.listFiles(self._of(folder), True)
        length = len(self._of(folder).toUri().getPath())
        while found.hasNext():
            status = found.next()
            path = status.getPath().toUri().getPath()
            if path.endswith(suffix):
                yield FoundFile(path[length:].lstrip("/"), status.getLen())

    def matching(self) -> list[FoundFile]:
        """The root as a pattern, as Spark takes it: all files that it matches, and those below folders that it matches.

        Without files whose names begin with _ or a dot, which Spark skips. FileNotFoundError if nothing matches.
        """
        roots = self._system.globStatus(self._root) or ()
        if not roots:
            raise FileNotFoundError(self.root)
        files = []
        for root in roots:
            found = self._system.listFiles(root.getPath(), True)
            while found.hasNext():
                status = found.next()
                if not status.getPath().getName().startswith(("_", ".")):
                    files.append(FoundFile(str(status.getPath().toString()), status.getLen()))
        return sorted(files, key=lambda file: file.path)

    def digest(self, address: str) -> str:
        """The SHA-256 of a file's content. Java reads it: the gateway to Python is slow."""
        with closing(self._system.open(self._path(address))) as stream:
            return str(self._jvm.org.apache.commons.codec.digest.DigestUtils.sha256Hex(stream))

    def count_rows(self, path: str) -> int:
        """The number of rows in a Parquet file, from its footer."""
        hadoop = self._jvm.org.apache.parquet.hadoop
        source = hadoop.util.HadoopInputFile.fromPath(self._of(path), self._conf)
        with closing(hadoop.ParquetFileReader.open(source)) as reader:
            return int(reader.getRecordCount())

    def read(self, path: str) -> Any:
        """The JSON in a file."""
        with closing(self._system.open(self._of(path))) as stream:
            return json.loads(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))

    def write(self, path: str, value: object) -> None:
        """Write JSON to a file, which appears when it is complete. A file that is there already stays as it is."""
        for tries_left in reversed(range(_TRIES)):
            unfinished = f"{path}.{uuid4().hex}{UNFINISHED}"
            self._create(unfinished, json.dumps(value, indent=1).encode())
            try:
                return self.move(unfinished, path)
            except FileNotFoundError:
                # A process that took this one for dead has cleaned up.
                if not tries_left:
                    raise

    def _create(self, path: str, content: bytes) -> None:
        with closing(self._system.create(self._of(path), True)) as stream:
            stream.write(content)

    def move(self, source: str, target: str) -> None:
        """Rename a file. If another process has done it, or has put a file there, only the source is deleted.

        FileNotFoundError if there is neither the source nor the target.
        """
        self._system.mkdirs(self._of(target).getParent())
        if not self.exists(target):
            renamed = self.exists(source) and self._system.rename(self._of(source), self._of(target))
            if not renamed and not self.exists(target):
                raise FileNotFoundError(_gone(self.at(source), self.at(target)))
        self.delete(source)

    def delete(self, path: str) -> None:
        """Delete a file or a folder, if it exists."""
        self._system.delete(self._of(path), True)

    def _of(self, path: str) -> Any:
        return self._path(self._root, path)


class _ArrowFiles(Files):
    """The same by means of pyarrow."""

    def __init__(self, root: str | Path) -> None:
        self.root = _with_scheme(root).rstrip("/")
        self._files, self._folder = fs.FileSystem.from_uri(plain_address(self.root))

    def exists(self, path: str) -> bool:
        return bool(self._files.get_file_info(self._at(path)).type != fs.FileType.NotFound)

    def names(self, folder: str) -> list[str]:
        return sorted(file.base_name for file in self._list(self._at(folder), recursive=False))

    def walk(self, folder: str, suffix: str) -> Iterator[FoundFile]:
        start = self._at(folder)
        for file in self._list(start, recursive=True):
            if file.is_file and file.path.endswith(suffix):
                yield FoundFile(file.path[len(start) :].lstrip("/"), file.size)

    def matching(self) -> list[FoundFile]:
        pattern = self._folder.rstrip("/")
        top = pattern.partition("*")[0].rpartition("/")[0] if "*" in pattern else pattern
        first = self._files.get_file_info(top)
        found = [first, *(self._list(top, recursive=True) if first.type == fs.FileType.Directory else ())]
        depth = pattern.count("/")  # a * does not match a slash
        roots = [
            file
            for file in found
            if file.type != fs.FileType.NotFound
            and file.path.count("/") == depth
            and fnmatch(file.path, pattern)
        ]
        if not roots:
            raise FileNotFoundError(self.root)
        files = {
            file.path: FoundFile(file.path, file.size)
            for root in roots
            for file in ([root] if root.is_file else self._list(root.path, recursive=True))
            if file.is_file and not file.base_name.startswith(("_", "."))
        }
        return [files[path] for path in sorted(files)]

    def digest(self, address: str) -> str:
        hashed = hashlib.sha256()
        with self._files.open_input_stream(address, compression=None) as stream:
            while block := stream.read(1 << 20):
                hashed.update(block)
        return hashed.hexdigest()

    def count_rows(self, path: str) -> int:
        return int(pq.read_metadata(self._at(path), filesystem=self._files).num_rows)

    def read(self, path: str) -> Any:
        with self._files.open_input_stream(self._at(path), compression=None) as stream:
            return json.loads(stream.read())

    def _create(self, path: str, content: bytes) -> None:
        self._files.create_dir(self._at(path).rpartition("/")[0])
        with self._files.open_output_stream(self._at(path), compression=None) as stream:
            stream.write(content)

    def move(self, source: str, target: str) -> None:
        self._files.create_dir(self._at(target).rpartition("/")[0])
        if not self.exists(target):
            try:
                self._files.move(self._at(source), self._at(target))
            except FileNotFoundError:
                if not self.exists(target):
                    raise FileNotFoundError(_gone(self.at(source), self.at(target))) from None
        self.delete(source)

    def delete(self, path: str) -> None:
        found = self._files.get_file_info(self._at(path))
        if found.type == fs.FileType.Directory:
            self._files.delete_dir(found.path)
        elif found.type != fs.FileType.NotFound:
            self._files.delete_file(found.path)
            # Hadoop keeps a checksum beside each file of this machine, and would compare it with the next one there.
            folder, _, name = path.rpartition("/")
            self.delete(f"{folder}/.{name}.crc")

    def _list(self, folder: str, *, recursive: bool) -> list[fs.FileInfo]:
        found: list[fs.FileInfo] = self._files.get_file_info(
            fs.FileSelector(folder, allow_not_found=True, recursive=recursive)
        )
        return found

    def _at(self, path: str) -> str:
        return f"{self._folder}/{path}"


def open_files(spark: SparkSession | None, root: str | Path) -> Files:
    """The files below a folder, as the session reaches them, or without a session."""
    return _ArrowFiles(root) if spark is None or is_remote(spark) else Files(spark, root)


def plain_address(address: str) -> str:
    """The address as programs other than Spark take it: Hadoop writes file:/… and s3a://…"""
    if address.startswith("file:"):
        return address.removeprefix("file:")
    return address.replace("s3a://", "s3://", 1)


def is_local(root: str | Path) -> bool:
    """Whether an address is that of a folder of this machine."""
    return "://" not in str(root) or str(root).startswith("file://")


def check_folder(root: str | Path) -> None:
    """Make a folder of this machine, or raise UsageError if that is not possible or no file can be written there."""
    if not is_local(root):
        return
    path = Path(_with_scheme(root).removeprefix("file:"))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{root}: is a file, not a folder") from None
    except OSError as error:
        raise UsageError(f"{root}: the folder cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"{root}: this user may not write there")


def _gone(source: str, target: str) -> str:
    return f"{source}: is gone, and {target} is not there either"


def _with_scheme(root: str | Path) -> str:
    """The address of a folder. That of a folder of this machine is the same by whatever links and .. it was named."""
    text = str(root)
    if not is_local(root):
        return text
    path = Path(re.sub(r"^file:(//)?(?=/)", "", text))
    return f"file:{path.resolve()}"  # Hadoop expects the path without percent-encoding
