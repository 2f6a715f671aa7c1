"""The run-time settings of our own sessions, with the reason for each. A setting in the user's dsn overrides ours.

They are applied by one ``select set_config(...)`` after connecting and not as start-up ``options``, because pgbouncer
refuses a connection with options unknown to it. A transaction pooler assigns us another server session for each
transaction, so behind one only the settings that the pooler tracks are applied: any other would stay behind in a
session that other clients use.
"""

import json
import os
import re
from collections.abc import Mapping

import attrs
from psycopg.abc import ConnDict

from trioboss.postgres.wire import BoundStatement
from trioboss.sql import Statement

__all__ = [
    "OWN_SETTINGS",
    "RESET",
    "SESSION_SETTINGS",
    "SessionSetting",
    "session_statement",
    "settings_statement",
]

# Our statements walk along an index. A generic plan that was made while a table was nearly empty stays in use when the
# table is full, so the planner must not choose a sequential or bitmap scan, however small the table looks. The
# search_path keeps functions and operators that other roles may have created (in `public` before Postgres 15 any role
# can) out of our statements.
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
    """Whether a transaction pooler tracks it and applies it to each server session that it assigns to us."""


SESSION_SETTINGS = (
    SessionSetting(
        "TimeZone", "UTC", "cron and day partitions are computed in UTC on every server", pooled=True
    ),
    SessionSetting("jit", "off", "our statements are short: compiling one costs more than running it"),
    SessionSetting(
        "plan_cache_mode", "force_generic_plan", "plan a statement once, not five times and then again"
    ),
    SessionSetting(
        "default_transaction_isolation",
        "read committed",
        "claims wait for a row and read it again; under repeatable read they would fail instead",
    ),
    SessionSetting("synchronous_commit", "on", "a send that returned is durable; raised only from 'off'"),
    SessionSetting(
        "client_connection_check_interval",
        "1s",
        "a statement must not commit a second after its client was killed; Postgres 14 on Linux or later",
    ),
)

# $1 is applied always, $2 under the condition of each setting.
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
_CONDITIONAL = frozenset({"synchronous_commit", "client_connection_check_interval"})

# Removes the settings and locks that a user of one of our sessions may have left in it.
RESET = (
    BoundStatement(Statement("trioboss_reset", "reset all", ())),
    BoundStatement(Statement("trioboss_unlock", "select pg_advisory_unlock_all()", ())),
)
_OPTION = re.compile(r"(?:-c\s*|--)([A-Za-z_][\w.-]*)\s*=")


def session_statement(parameters: ConnDict, settings: Mapping[str, str], *, pooled: bool) -> BoundStatement:
    """Return the statement that applies our settings to a new session, overridden by the caller's ``settings``.

    Leaves out what the connection ``parameters`` set in their options, and behind a pooler (``pooled``) what the
    pooler does not track.
    """
    overridden = _names_in_options(parameters) | {name.lower() for name in settings}
    ours = {
        s.name: s.value
        for s in SESSION_SETTINGS
        if s.name.lower() not in overridden and (s.pooled or not pooled)
    }
    always = {k: v for k, v in ours.items() if k not in _CONDITIONAL} | dict(settings)
    where_it_applies = {k: v for k, v in ours.items() if k in _CONDITIONAL}
    return BoundStatement(_APPLY, (json.dumps(always).encode(), json.dumps(where_it_applies).encode()))


def settings_statement(settings: Mapping[str, str]) -> BoundStatement:
    """Return the statement that applies exactly these settings."""
    return BoundStatement(_APPLY, (json.dumps(dict(settings)).encode(), b"{}"))


def _names_in_options(parameters: ConnDict) -> set[str]:
    options = str(parameters.get("options") or os.environ.get("PGOPTIONS", ""))
    return {name.lower().replace("-", "_") for name in _OPTION.findall(options)}
