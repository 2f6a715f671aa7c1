"""Which kind of role the program connects as: its rights tell, since trioboss has no users of its own."""

from collections.abc import Sequence

import attrs

from trioboss.api.observing import find_missing_rights
from trioboss.api.sync import SyncBoss
from trioboss.sql import Catalog
from trioboss.sql.grants import Right, needed_rights

__all__ = ["RoleKind", "find_role_kind"]

_SIMILAR = 0.3  # the share of rights that a role of a kind may lack


@attrs.frozen
class RoleKind:
    """The current role of the database."""

    role: str
    text: str | None
    """The kind with its article; None: of no kind."""
    missing: Sequence[Right] = ()
    """The rights of its kind that the role lacks."""


def find_role_kind(boss: SyncBoss) -> RoleKind:
    """The kind whose rights the current role has, or nearly has. Raises where it may not use the schema."""
    with boss.unchecked_transaction() as conn:
        row = conn.execute(Catalog(boss.schema).get("examine_role").text.encode()).fetchone()
    assert row is not None
    role, _, owns, _ = row
    # A worker has nearly all rights of the others, so it is the first candidate.
    for kind in ("worker", "reader", "producer"):
        needed = needed_rights(boss.schema, kind)
        missing = find_missing_rights(boss, needed)
        if len(missing) < _SIMILAR * len(needed):
            return RoleKind(role, "the admin" if owns else f"a {kind}", missing)
    return RoleKind(role, None)
