"""Connection strings: read, completed with our defaults, and shown without secrets."""

import os
import re
from collections.abc import Mapping
from typing import Any, TypedDict

import psycopg
from psycopg import ConnectionInfo
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from trioboss.errors import UsageError
from trioboss.postgres.embedded.lookup import find_dsn

__all__ = [
    "CONNECTION_DEFAULTS",
    "ConnectionOptions",
    "check_database_encoding",
    "describe_database",
    "has_password",
    "hide_password",
    "parse_dsn",
    "session_conninfo",
    "session_parameters",
    "with_parameters",
]


class ConnectionOptions(TypedDict, total=False):
    """Parameters of libpq that `open_boss` and `SyncBoss` take beside the dsn, or instead of one."""

    host: str
    """Also several, separated by commas, or the folder of a socket."""
    hostaddr: str
    port: int | str
    dbname: str
    user: str
    password: str
    passfile: str
    service: str
    sslmode: str
    """``disable``, ``prefer`` (the default), ``require``, ``verify-ca`` or ``verify-full``."""
    sslrootcert: str
    sslcert: str
    sslkey: str
    sslpassword: str
    channel_binding: str
    target_session_attrs: str
    connect_timeout: int
    """Seconds (10)."""
    application_name: str
    """Shown in pg_stat_activity (trioboss)."""
    options: str
    """Options of the server process: ``-c statement_timeout=60000``."""


CONNECTION_DEFAULTS: Mapping[str, str | int] = {
    # Shown in pg_stat_activity. An application_name in the dsn or in PGAPPNAME takes precedence over a fallback.
    "fallback_application_name": "trioboss",
    # One host of several that does not answer must not use up the time meant for the others.
    "connect_timeout": 10,
    # A peer that vanished without closing is detected in 25 s on an idle connection, and in 30 s during a statement.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_SECRETS = ("password", "sslpassword")
_SSL = re.compile(r"(?:[?&]|\s|^)ssl=")  # node-postgres has it in its connection strings
_SERVERS = ("host", "hostaddr", "service")
_PORTS = re.compile(r"[0-9,\s]*")


def parse_dsn(dsn: str) -> ConnDict:
    """Return the parameters of a connection string.

    Raises UsageError without quoting any part of it, because it may hold a password.
    """
    try:
        parameters = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        if _SSL.search(dsn):
            raise UsageError("dsn: ssl: libpq calls it sslmode, as in ?sslmode=require") from None
        raise _unreadable() from None
    # A password with a slash in a URI ends the host early: libpq would quote half of the password as a bad port.
    if not _PORTS.fullmatch(str(parameters.get("port") or "")):
        raise _unreadable()
    return parameters


def with_parameters(dsn: str | None, parameters: Mapping[str, Any]) -> str | None:
    """The dsn with these parameters instead of its own. A server that they name takes the place of that of the
    environment, and of the embedded one.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    if not given:
        return dsn
    base = dsn or ("" if any(name in given for name in _SERVERS) else find_dsn())
    if base is None:
        raise UsageError(f"{min(given)}: names no server: give a dsn or a host, too")
    if base:
        parse_dsn(base)  # its errors quote nothing
    return make_conninfo(base, **given)


def _unreadable() -> UsageError:
    return UsageError(
        "dsn: neither a URI (postgresql://user@host/database) nor a list of key=value; special characters "
        "in a URI must be percent-encoded, and values with spaces must be quoted"
    )


def session_parameters(dsn: str) -> ConnDict:
    """Return the connection parameters of one of our sessions: those of the dsn, completed with our defaults."""
    parameters = parse_dsn(dsn)
    defaults = dict(CONNECTION_DEFAULTS)
    if "PGCONNECT_TIMEOUT" in os.environ:
        del defaults["connect_timeout"]
    if any(name.startswith(("keepalives", "tcp_user_timeout")) for name in parameters):
        # The keepalive settings only make sense together, so the user's are not mixed with ours.
        defaults = {k: v for k, v in defaults.items() if not k.startswith(("keepalives", "tcp_"))}
    # Not overridable: the parameters of our statements are encoded in UTF-8.
    return defaults | parameters | {"client_encoding": "UTF8"}


def session_conninfo(dsn: str) -> str:
    """Return the connection parameters of one of our sessions as text, for a libpq other than psycopg's."""
    return make_conninfo("", **session_parameters(dsn))


def check_database_encoding(info: ConnectionInfo) -> None:
    """Raise UsageError unless the database can store every text."""
    encoding = info.parameter_status("server_encoding")  # some poolers do not report it
    if encoding not in (None, "UTF8"):
        raise UsageError(f"dsn: the encoding of database {info.dbname!r} is {encoding}: trioboss needs UTF8")


def hide_password(dsn: str) -> str:
    """Return the dsn without secrets: for people, not for connecting."""
    try:
        parameters = parse_dsn(dsn)
    except UsageError:
        return "…"
    shown = {name: value for name, value in parameters.items() if name not in _SECRETS}
    return make_conninfo("", **shown)


def describe_database(dsn: str) -> str:
    """The database of a dsn for people: `shop on db.example:5432`."""
    parameters = parse_dsn(dsn)
    host = parameters.get("host") or parameters.get("hostaddr") or os.environ.get("PGHOST") or "local socket"
    user = parameters.get("user") or os.environ.get("PGUSER")
    name = parameters.get("dbname") or os.environ.get("PGDATABASE") or user or "the default database"
    port = f":{parameters['port']}" if parameters.get("port") else ""
    return f"{name} on {host}{port}" + (f" as {user}" if user else "")


def has_password(dsn: str) -> bool:
    """Tell whether the dsn itself contains a password."""
    try:
        parameters = conninfo_to_dict(dsn)
    except psycopg.Error:
        return False
    return any(parameters.get(name) for name in _SECRETS)
