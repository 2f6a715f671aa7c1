"""A dsn that can be shown."""

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

__all__ = ["has_password", "hide_password"]


def hide_password(dsn: str) -> str:
    """The dsn without secrets: for people, not for connecting."""
    try:
        parameters = conninfo_to_dict(dsn)
    except psycopg.Error:
        return "…"
    shown = {name: value for name, value in parameters.items() if name not in ("password", "sslpassword")}
    return make_conninfo("", **shown)


def has_password(dsn: str) -> bool:
    """Whether the dsn itself holds a password."""
    try:
        return bool(conninfo_to_dict(dsn).get("password"))
    except psycopg.Error:
        return False
