"""A dsn that can be shown."""

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

__all__ = ["hide_password"]


def hide_password(dsn: str) -> str:
    """The dsn without secrets: for people, not for connecting."""
    try:
        parameters = conninfo_to_dict(dsn)
    except psycopg.Error:
        return "…"
    shown = {name: value for name, value in parameters.items() if name not in ("password", "sslpassword")}
    return make_conninfo("", **shown)
