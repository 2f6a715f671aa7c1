"""What trioboss asks of its own sessions, and why. Whatever the user's dsn says, wins.

Run-time settings are applied by one `select set_config(...)` after connecting, and not as start-up `options`:
pgbouncer refuses a connection with options it does not know. Behind a pooler that moves us from session to
session only those are applied that it carries along; the others would stay behind in a session we share.
"""

import json
import os
import re
from collections.abc import Mapping

import attrs
from psycopg import ConnectionInfo, ProgrammingError
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from trioboss.errors import UsageError
from trioboss.postgres.wire import BoundStatement
from trioboss.sql import Statement

__all__ = [
    "CONNECTION_DEFAULTS",
    "OWN_SETTINGS",
    "RESET",
    "SESSION_SETTINGS",
    "SessionSetting",
    "check_encoding",
    "parse_dsn",
    "session_conninfo",
    "session_parameters",
    "session_step",
    "settings_step",
]

CONNECTION_DEFAULTS: Mapping[str, str | int] = {
    # Seen in pg_stat_activity. An application_name in the dsn or in PGAPPNAME goes before a fallback.
    "fallback_application_name": "trioboss",
    # One host of several that does not answer must not use up the time meant for the others.
    "connect_timeout": 10,
    # A peer that vanished without a word is noticed in 25 s at rest, and in 30 s with a statement under way.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


# Our statements are walks along an index. A plan made while a table was nearly empty is kept when it is full,
# so the planner must not choose to read all of it, however small it looks. And where anybody may create functions
# and operators, as in `public` before Postgres 15, ours must not be led to theirs.
OWN_SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "search_path": "pg_catalog, pg_temp",
}


@attrs.frozen
class SessionSetting:
    """One run-time setting of our sessions."""

    name: str
    value: str
    reason: str
    pooled: bool = False
    """Whether a transaction pooler keeps it for us when it changes the session under our feet."""


SESSION_SETTINGS = (
    SessionSetting(
        "TimeZone", "UTC", "cron and day partitions are reckoned in UTC on every server", pooled=True
    ),
    SessionSetting("jit", "off", "our statements are short: compiling one costs more than running it"),
    SessionSetting(
        "plan_cache_mode", "force_generic_plan", "plan a statement once, not five times and then again"
    ),
    SessionSetting(
        "default_transaction_isolation",
        "read committed",
        "claims wait for a row and look at it again; under repeatable read they would fail instead",
    ),
    SessionSetting("synchronous_commit", "on", "a send that returned is durable; raised only from 'off'"),
    SessionSetting(
        "client_connection_check_interval",
        "1s",
        "a statement must not commit a second after its client was killed; Postgres 14 on Linux or later",
    ),
)

# The second list is what is changed only where it applies.
_APPLY = Statement(
    "trioboss_session",
    """
    select set_config(key, value, false) from json_each_text($1::json)
    union all
    select set_config(key, value, false) from json_each_text($2::json)
    where case key
          when 'synchronous_commit' then current_setting(key) = 'off'
          when 'client_connection_check_interval'
              then current_setting('server_version_num')::int >= 140000 and version() like '%linux%'
          end
    """,
    ("always", "where_it_applies"),
)
# What a user of one of our sessions may have left behind in it.
RESET = (
    BoundStatement(Statement("trioboss_reset", "reset all", ())),
    BoundStatement(Statement("trioboss_unlock", "select pg_advisory_unlock_all()", ())),
)
_CONDITIONAL = frozenset({"synchronous_commit", "client_connection_check_interval"})
_PORTS = re.compile(r"[0-9,\s]*")
_OPTION = re.compile(r"(?:-c\s*|--)([A-Za-z_][\w.-]*)\s*=")


def parse_dsn(dsn: str) -> ConnDict:
    """Read a connection string, or raise UsageError without repeating any of it: it may hold a password."""
    try:
        params = conninfo_to_dict(dsn)
    except ProgrammingError:
        raise _unreadable() from None
    # What a password with a slash in it does to a URI: libpq would quote the half of it as a bad port.
    if not _PORTS.fullmatch(str(params.get("port") or "")):
        raise _unreadable()
    return params


def _unreadable() -> UsageError:
    return UsageError(
        "dsn: neither a URI (postgresql://user@host/database) nor a list of key=value; special characters "
        "in a URI must be percent-encoded, and values with spaces must be quoted"
    )


def session_parameters(dsn: str) -> ConnDict:
    """Return the connection parameters of one of our sessions: the user's, and ours where they have none."""
    params = parse_dsn(dsn)
    ours = dict(CONNECTION_DEFAULTS)
    if "PGCONNECT_TIMEOUT" in os.environ:
        del ours["connect_timeout"]
    if any(name.startswith(("keepalives", "tcp_user_timeout")) for name in params):
        # Half of their keepalive settings and half of ours would be neither's intention.
        ours = {k: v for k, v in ours.items() if not k.startswith(("keepalives", "tcp_"))}
    # Not a matter of taste: the parameters of our statements are encoded in UTF-8.
    return ours | params | {"client_encoding": "UTF8"}


def session_conninfo(dsn: str) -> str:
    """The connection parameters of one of our sessions as text, for a libpq that is not psycopg's."""
    return make_conninfo("", **session_parameters(dsn))


def session_step(params: ConnDict, settings: Mapping[str, str], *, pooled: bool) -> BoundStatement:
    """Return the statement that makes a fresh session one of ours, with the caller's settings on top."""
    chosen = _names_in_options(params) | {name.lower() for name in settings}
    ours = {
        s.name: s.value for s in SESSION_SETTINGS if s.name.lower() not in chosen and (s.pooled or not pooled)
    }
    always = {k: v for k, v in ours.items() if k not in _CONDITIONAL} | dict(settings)
    where_it_applies = {k: v for k, v in ours.items() if k in _CONDITIONAL}
    return BoundStatement(_APPLY, (json.dumps(always).encode(), json.dumps(where_it_applies).encode()))


def settings_step(settings: Mapping[str, str]) -> BoundStatement:
    """Return the statement that applies just these settings."""
    return BoundStatement(_APPLY, (json.dumps(dict(settings)).encode(), b"{}"))


def _names_in_options(params: ConnDict) -> set[str]:
    options = str(params.get("options") or os.environ.get("PGOPTIONS", ""))
    return {name.lower().replace("-", "_") for name in _OPTION.findall(options)}


def check_encoding(info: ConnectionInfo) -> None:
    """Refuse a database that cannot hold every text."""
    encoding = info.parameter_status("server_encoding")  # not every pooler tells
    if encoding not in (None, "UTF8"):
        raise UsageError(f"dsn: the encoding of database {info.dbname!r} is {encoding}: trioboss needs UTF8")
