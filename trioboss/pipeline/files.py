"""Files of a lake, wherever Hadoop's file systems reach: on this machine, in HDFS, in an object store."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

__all__ = ["Files"]


class Files:
    """The files below a folder. All paths are relative to it."""

    def __init__(self, spark: SparkSession, root: str | Path) -> None:
        text = str(root)
        if "://" not in text and not text.startswith("file:"):
            text = f"file:{Path(text).absolute()}"  # Hadoop wants no character escaped
        jvm: Any = spark._jvm
        self._io = jvm.org.apache.commons.io.IOUtils
        self._path = jvm.org.apache.hadoop.fs.Path
        root_path = self._path(text)
        self._system = root_path.getFileSystem(spark._jsc.hadoopConfiguration())
        self._root = self._system.makeQualified(root_path)
        self.root = str(self._root.toString())

    def at(self, path: str) -> str:
        """The whole address of a path, for Spark."""
        return f"{self.root}/{path}"

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return bool(self._system.exists(self._of(path)))

    def names(self, folder: str) -> list[str]:
        """What is in a folder; nothing if there is none."""
        if not self.exists(folder):
            return []
        return sorted(status.getPath().getName() for status in self._system.listStatus(self._of(folder)))

    def describe(self) -> list[object]:
        """The address, and of each file there or below it the name, the size and the time of the last change.

        The root may be a pattern, as Spark takes it. Nothing there is a FileNotFoundError.
        """
        roots = self._system.globStatus(self._root) or ()
        files: list[list[object]] = []
        for root in roots:
            found = self._system.listFiles(root.getPath(), True)
            while found.hasNext():
                status = found.next()
                files.append([status.getPath().getName(), status.getLen(), status.getModificationTime()])
        if not roots:
            raise FileNotFoundError(self.root)
        return [self.root, *sorted(files, key=str)]

    def walk(self, folder: str, suffix: str) -> Iterator[str]:
        """The files in a folder and all folders below, relative to it, that end like this."""
        if not self.exists(folder):
            return
        found = self._system.listFiles(self._of(folder), True)
        whole = self._of(folder).toUri().getPath()
        while found.hasNext():
            path = found.next().getPath().toUri().getPath()
            if path.endswith(suffix):
                yield path[len(whole) :].lstrip("/")

    def read(self, path: str) -> Any:
        """The JSON in a file."""
        stream = self._system.open(self._of(path))
        try:
            return json.loads(self._io.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, path: str, value: object) -> None:
        """Write JSON to a new file, which appears when it is complete."""
        if self.exists(path):
            raise FileExistsError(self.at(path))
        unfinished = f"{path}.unfinished"
        stream = self._system.create(self._of(unfinished), True)
        stream.write(json.dumps(value, indent=1).encode())
        stream.close()
        self.move(unfinished, path)

    def move(self, source: str, target: str) -> None:
        """Rename a file; the folder is made if there is none."""
        self._system.mkdirs(self._of(target).getParent())
        if not self._system.rename(self._of(source), self._of(target)):
            raise OSError(f"cannot rename {self.at(source)} to {self.at(target)}")

    def delete(self, path: str) -> None:
        """Delete a file or a folder, if it is there."""
        self._system.delete(self._of(path), True)

    def _of(self, path: str) -> Any:
        return self._path(self._root, path)
