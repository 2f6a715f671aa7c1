"""A dsn that can be shown."""

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from trioboss.errors import UsageError
from trioboss.postgres.settings import parse_dsn

__all__ = ["has_password", "hide_password"]

_SECRETS = ("password", "sslpassword")


def hide_password(dsn: str) -> str:
    """The dsn without secrets: for people, not for connecting."""
    try:
        parameters = parse_dsn(dsn)
    except UsageError:
        return "…"
    shown = {name: value for name, value in parameters.items() if name not in _SECRETS}
    return make_conninfo("", **shown)


def has_password(dsn: str) -> bool:
    """Whether the dsn itself holds a password."""
    try:
        parameters = conninfo_to_dict(dsn)
    except psycopg.Error:
        return False
    return any(parameters.get(name) for name in _SECRETS)
