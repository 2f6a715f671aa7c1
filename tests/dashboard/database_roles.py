"""Roles of the database, with the rights that `trioboss grants` gives."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from trioboss.sql.grants import grant_plans


@contextmanager
def new_role(owner: Any, kind: str) -> Iterator[str]:
    """A role with the rights of a kind, for the length of a block."""
    role = f"dashboard_{kind}_{uuid4().hex[:8]}"
    owner.execute(f"create role {role} login")
    owner.execute(grant_plans("trioboss", {kind: role}).encode())
    try:
        yield role
    finally:
        owner.execute(f"drop owned by {role}")
        owner.execute(f"drop role {role}")
