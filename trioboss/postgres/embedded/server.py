"""EmbeddedPostgres: joins the running server or starts it, and holds a share of it."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from trioboss.errors import DatabaseUnavailable, NoPostgres, UsageError
from trioboss.postgres.embedded.account import choose_account
from trioboss.postgres.embedded.binaries import find_binaries
from trioboss.postgres.embedded.cluster import SUPERUSER, Cluster
from trioboss.postgres.embedded.folders import make_home, make_temporary_home
from trioboss.postgres.embedded.launch import LOOPBACK, ServerOptions, launch_reaper, launch_server
from trioboss.postgres.embedded.locks import FileLock
from trioboss.postgres.embedded.postmaster import Postmaster, find_postmaster

__all__ = ["EmbeddedPostgres"]

_POLL_INTERVAL = 0.003  # seconds between two checks of a lock or a pid file, which send no event


class EmbeddedPostgres:
    """A share of the server whose data is in one folder: started with the first share, stopped after the last.

    ``home`` is TRIOBOSS_HOME unless given. ``durable``, ``tcp``, ``settings`` and ``linger`` take effect if this share
    starts the server; a running server is used as it is. ``linger`` keeps it for so many seconds after the last share
    was released. ``timeout`` must be long enough for the recovery after a crash.

    ``tcp=True`` listens on a loopback port too, with a password; the dsn names the file that contains it.
    ``durable=False`` is for tests: a power failure may lose all data. ``keep_data=False`` puts the data into a
    temporary folder that is deleted with the server; if it is not durable either, into memory if there is enough,
    unless TMPDIR names another place.

    The share ends with `release`, or with the process however that ends. Children do not inherit it.
    """

    def __init__(
        self,
        home: Path | str | None = None,
        *,
        durable: bool = True,
        tcp: bool = False,
        settings: Mapping[str, str | int | bool] | None = None,
        keep_data: bool = True,
        linger: float = 0.0,
        timeout: float = 120.0,
    ) -> None:
        if home is not None and not keep_data:
            raise UsageError("keep_data: False is for a temporary folder, so it cannot be given with a home")
        self._named_home = None if home is None else Path(home)
        self._options = ServerOptions(durable, tcp, dict(settings or {}))
        self._keep_data = keep_data
        self._linger = linger
        self._timeout = timeout
        self._cluster: Cluster | None = None
        self._share: FileLock | None = None
        self._postmaster: Postmaster | None = None

    def start(self) -> Self:
        """Take a share of the server, and start it if needed. It accepts connections when this returns."""
        if self._share is not None and self._share.held:
            raise UsageError("start: already started; another share is another EmbeddedPostgres")
        binaries = find_binaries()
        try:
            self._cluster = Cluster(self._make_home(), binaries)
            self._share = self._take_share(self._cluster)
            self.ensure_running()
        except OSError as error:
            self.release()
            raise NoPostgres(
                f"no server can run here ({error}): set TRIOBOSS_HOME to another folder"
            ) from error
        except BaseException:
            self.release()
            raise
        return self

    def _make_home(self) -> Path:
        account = choose_account()
        if self._keep_data:
            return make_home(self._named_home, account)
        return make_temporary_home(account, durable=self._options.durable)

    def _take_share(self, cluster: Cluster) -> FileLock:
        deadline = time.monotonic() + self._timeout
        # The reaper holds the lock exclusively while it stops the last server.
        while (share := FileLock.try_shared(cluster.users_lock)) is None:
            self._wait(deadline, f"the last server of {cluster.home} is still being stopped")
        return share

    def ensure_running(self) -> None:
        """Start the server again if it has crashed. Its socket stays at the same path."""
        cluster = self._started_cluster()
        # The reaper comes first: this process may be killed at any moment, and then the reaper must stop the server.
        launch_reaper(cluster, linger=self._linger, keep_data=self._keep_data)
        self._postmaster = self._join_or_start(cluster)
        if self._options.tcp and not self._postmaster.listen_address:
            raise UsageError(f"tcp: the server of {cluster.home} was started without it and is in use")

    def _join_or_start(self, cluster: Cluster) -> Postmaster:
        deadline = time.monotonic() + self._timeout
        log_start: int | None = None
        while (found := find_postmaster(cluster.data)) is None or not found.is_ready:
            # The lock is free only if no server is running, starting or stopping.
            if (lock := FileLock.try_exclusive(cluster.server_lock)) is not None:
                with lock:
                    # A server that was started without trioboss holds no lock: it is waited for like any other.
                    if find_postmaster(cluster.data) is None:
                        # The server that we started has released its lock before it was ready.
                        if log_start is not None:
                            raise _failed_start(cluster, log_start)
                        log_start = launch_server(cluster, choose_account(), self._options, lock)
            self._wait(deadline, f"the server of {cluster.home} is not ready (see {cluster.log})")
        return found

    def _wait(self, deadline: float, problem: str) -> None:
        if time.monotonic() > deadline:
            raise DatabaseUnavailable(f"{problem}: gave up after {self._timeout:g} seconds")
        time.sleep(_POLL_INTERVAL)

    def release(self) -> None:
        """Release the share. If it was the last one, the server is stopped in the background."""
        if self._share is None or not self._share.held:
            return
        # The reaper may have been killed, and without one the server would run for ever. Errors are ignored: the folder
        # was deleted, and the server with it.
        with contextlib.suppress(OSError, NoPostgres):
            launch_reaper(self._started_cluster(), linger=self._linger, keep_data=self._keep_data)
        self._share.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def dsn(self) -> str:
        """The dsn of the server: of its socket, or with ``tcp=True`` of its loopback port."""
        cluster, found = self._started_cluster(), self._postmaster
        if found is None:
            raise UsageError("dsn: the server is not started yet")
        user, database = SUPERUSER, "postgres"
        if self._options.tcp:
            address = f"{user}@{LOOPBACK}:{found.port}/{database}"
            return f"postgresql://{address}?passfile={quote(str(cluster.passfile))}&sslmode=disable"
        return f"postgresql://{user}@/{database}?host={quote(found.socket_folder)}&port={found.port}"

    @property
    def home(self) -> Path:
        """The folder of the data, the locks and the log."""
        return self._started_cluster().home

    @property
    def data(self) -> Path:
        """The data directory of Postgres."""
        return self._started_cluster().data

    @property
    def log(self) -> Path:
        """The server's log."""
        return self._started_cluster().log

    def _started_cluster(self) -> Cluster:
        if self._cluster is None:
            raise UsageError("EmbeddedPostgres: call start() first, or use it in a with statement")
        return self._cluster


def _failed_start(cluster: Cluster, log_start: int) -> NoPostgres:
    quoted = cluster.read_log(log_start)
    return NoPostgres(f"the server of {cluster.home} ended while it started. From {cluster.log}:\n{quoted}")
