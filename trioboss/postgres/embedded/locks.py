"""File locks that die with their holder.

`flock` belongs to the open file, not to the process: a child that inherits the descriptor holds the lock
too, and it ends with the last of them. That is wanted for the server and the reaper, which are handed a lock,
and never for other children: descriptors close on exec, and here also after a bare fork.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from weakref import WeakSet

__all__ = ["FileLock"]


class FileLock:
    """A lock that is held now. Closing gives up our hold, not that of a child that was handed the lock."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        _locks.add(self)

    @classmethod
    def try_exclusive(cls, path: Path) -> "FileLock | None":
        """Return the lock, or None while anybody holds it."""
        return cls._try(path, fcntl.LOCK_EX)

    @classmethod
    def try_shared(cls, path: Path) -> "FileLock | None":
        """Return a share of the lock, or None while somebody holds it exclusively."""
        return cls._try(path, fcntl.LOCK_SH)

    @classmethod
    def _try(cls, path: Path, kind: int) -> "FileLock | None":
        lock = cls(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            fcntl.flock(lock.fileno(), kind | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        except BaseException:
            lock.close()
            raise
        return lock

    @property
    def held(self) -> bool:
        """Whether this process still holds it: not after `close`, and never in a forked child."""
        return self._descriptor is not None

    def fileno(self) -> int:
        """Return the descriptor, for a child that shall hold the lock too."""
        if self._descriptor is None:
            raise ValueError("the lock is not held any more")
        return self._descriptor

    def close(self) -> None:
        """Give up this process's hold. Never LOCK_UN: that would take it from the children too."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "FileLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_locks: "WeakSet[FileLock]" = WeakSet()


def _forget_in_child() -> None:
    for lock in tuple(_locks):
        lock.close()


os.register_at_fork(after_in_child=_forget_in_child)
