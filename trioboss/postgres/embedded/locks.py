"""File locks that the kernel releases when the process that has them ends.

A lock of `flock` belongs to the open file, not to the process: a child that inherits the descriptor holds the lock too,
and the lock is released after the last of them. That is intended for the server and the reaper, to which a lock is
passed, and never for other children: descriptors are closed on exec, and by this module also after a bare fork.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from weakref import WeakSet

__all__ = ["FileLock"]


class FileLock:
    """A lock that is held. Closing it does not release it for a child that has inherited it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        _locks.add(self)

    @classmethod
    def try_exclusive(cls, path: Path) -> "FileLock | None":
        """Return the lock, or None while any other process holds it."""
        return cls._try(path, fcntl.LOCK_EX)

    @classmethod
    def try_shared(cls, path: Path) -> "FileLock | None":
        """Return a shared lock, or None while another process holds it exclusively."""
        return cls._try(path, fcntl.LOCK_SH)

    @classmethod
    def _try(cls, path: Path, kind: int) -> "FileLock | None":
        # A new open file for each lock: two FileLocks of one process exclude each other like those of two processes.
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
        """Whether this process still holds it. False after `close`, and always in a forked child."""
        return self._descriptor is not None

    def fileno(self) -> int:
        """Return the descriptor, for a child that inherits the lock."""
        if self._descriptor is None:
            raise ValueError("the lock is not held any more")
        return self._descriptor

    def close(self) -> None:
        """Release the lock in this process. LOCK_UN would release it in its children too, so the file is closed."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "FileLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


# For the hook below, which is one for the process and cannot be removed: a hook for each lock would keep all of them
# for ever. Like the table of descriptors it belongs to the process, and nothing else reads it.
_locks: "WeakSet[FileLock]" = WeakSet()


def _close_in_child() -> None:
    for lock in tuple(_locks):
        lock.close()


# A forked child (multiprocessing, a server with worker processes) would otherwise hold our share as long as it lives.
os.register_at_fork(after_in_child=_close_in_child)
