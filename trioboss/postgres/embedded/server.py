"""EmbeddedPostgres: join the running server or start it, hold a share of it, leave."""

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

_POLL = 0.003  # seconds between two looks at a lock or a pid file: there is no event to wait for


class EmbeddedPostgres:
    """A share of the server whose data lives in one folder: started by the first holder, stopped by the last.

    `home` is TRIOBOSS_HOME unless given. `durable`, `tcp`, `settings` and `linger` are for the one who starts
    the server: who joins a running one takes it as it is. `linger` keeps it for so many seconds after the
    last holder left. `timeout` must cover the recovery after a crash.

    `tcp=True` listens on a loopback port too, where a password is asked for; the dsn names the file that has
    it. `durable=False` leaves it to the machine when data reaches the disk, and a power cut may take it all:
    for tests. `keep_data=False` puts the data into a temporary folder that is deleted with the server; if it is
    not durable either, into memory where there is room for it, unless TMPDIR names a place.

    The share ends with `release`, or with the process however that ends; children do not inherit it.
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
        """Take a share of the server, which accepts connections on return."""
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
        # Refused while a reaper stops the last server.
        while (share := FileLock.try_shared(cluster.users_lock)) is None:
            self._wait(deadline, f"the last server of {cluster.home} is still being stopped")
        return share

    def ensure_running(self) -> None:
        """Start the server again if it crashed while we hold a share of it. Its socket stays where it was."""
        cluster = self._started_cluster()
        # Before anything it is needed for: from here on we may be killed at any moment.
        launch_reaper(cluster, linger=self._linger, keep_data=self._keep_data)
        self._postmaster = self._join_or_start(cluster)
        if self._options.tcp and not self._postmaster.listen_address:
            raise UsageError(f"tcp: the server of {cluster.home} was started without it and is in use")

    def _join_or_start(self, cluster: Cluster) -> Postmaster:
        deadline = time.monotonic() + self._timeout
        log_start: int | None = None
        while (found := find_postmaster(cluster.data)) is None or not found.is_ready:
            # While anybody's server lives, or is being started or stopped, its lock is not to be had.
            if (lock := FileLock.try_exclusive(cluster.server_lock)) is not None:
                with lock:
                    # A server that was started by hand has no lock: wait for it as for any other.
                    if find_postmaster(cluster.data) is None:
                        if log_start is not None:
                            raise _failed_start(cluster, log_start)
                        log_start = launch_server(cluster, choose_account(), self._options, lock)
            self._wait(deadline, f"the server of {cluster.home} is not ready (see {cluster.log})")
        return found

    def _wait(self, deadline: float, problem: str) -> None:
        if time.monotonic() > deadline:
            raise DatabaseUnavailable(f"{problem}: gave up after {self._timeout:g} seconds")
        time.sleep(_POLL)

    def release(self) -> None:
        """Give up the share. If it was the last one, the server is stopped in the background."""
        if self._share is None or not self._share.held:
            return
        with contextlib.suppress(OSError, NoPostgres):  # the folder is gone, and the server with it
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
        """Where to connect: through the socket, or with `tcp=True` through the loopback port."""
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
        """The data directory, as Postgres calls it."""
        return self._started_cluster().data

    @property
    def log(self) -> Path:
        """What the server has to say."""
        return self._started_cluster().log

    def _started_cluster(self) -> Cluster:
        if self._cluster is None:
            raise UsageError("EmbeddedPostgres: call start() first, or use it in a with statement")
        return self._cluster


def _failed_start(cluster: Cluster, log_start: int) -> NoPostgres:
    quoted = cluster.read_log(log_start)
    return NoPostgres(f"the server of {cluster.home} ended while it started. From {cluster.log}:\n{quoted}")
