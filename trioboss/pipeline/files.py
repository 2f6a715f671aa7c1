"""Files in any file system that Hadoop reaches: of this machine, in HDFS, in an object store."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
from pyspark.sql import SparkSession

__all__ = ["Files", "FoundFile"]


@attrs.frozen
class FoundFile:
    """A file that was found."""

    path: str
    """Relative to the folder in which it was searched for, or the whole address."""
    bytes: int


class Files:
    """The files below a folder. All paths are relative to it."""

    def __init__(self, spark: SparkSession, root: str | Path) -> None:
        text = str(root)
        if "://" not in text and not text.startswith("file:"):
            text = f"file:{Path(text).absolute()}"  # Hadoop expects the path without percent-encoding
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        root_path = self._path(text)
        self._conf = spark._jsc.hadoopConfiguration()
        self._system = root_path.getFileSystem(self._conf)
        self._root = self._system.makeQualified(root_path)
        self.root = str(self._root.toString())

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
        unfinished = f"{path}.{uuid4().hex}.unfinished"
        with closing(self._system.create(self._of(unfinished), True)) as stream:
            stream.write(json.dumps(value, indent=1).encode())
        self.move(unfinished, path)

    def move(self, source: str, target: str) -> None:
        """Rename a file. If another process has done it, or has put a file there, only the source is deleted.

        FileNotFoundError if there is neither the source nor the target.
        """
        self._system.mkdirs(self._of(target).getParent())
        if not self.exists(target):
            renamed = self.exists(source) and self._system.rename(self._of(source), self._of(target))
            if not renamed and not self.exists(target):
                raise FileNotFoundError(
                    f"{self.at(source)}: is gone, and {self.at(target)} is not there either"
                )
        self.delete(source)

    def delete(self, path: str) -> None:
        """Delete a file or a folder, if it exists."""
        self._system.delete(self._of(path), True)

    def _of(self, path: str) -> Any:
        return self._path(self._root, path)
