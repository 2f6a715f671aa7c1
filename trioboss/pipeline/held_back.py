"""Finds the transaction that keeps new history from being exported.

Rows are exported in the order of transactions, and only once all older transactions have ended: else a row of an older
one could appear behind them. So one transaction that stays open holds back everything that was written after it began.
"""

import attrs

from trioboss.pipeline.database import Database
from trioboss.pipeline.manifest import FOLDERS
from trioboss.pipeline.planning import read_horizon

__all__ = ["HeldBack", "find_held_back"]


@attrs.frozen
class HeldBack:
    """Rows that are committed and cannot be exported yet, and the transaction for which they wait."""

    rows: int
    xid: int
    pid: int | None
    """The process of the server that runs the transaction; None: it is a prepared transaction, or has just ended."""
    role: str | None
    database: str | None
    application: str | None
    state: str | None
    seconds: float | None
    """How long it has been open."""
    prepared: str | None
    """The name of a prepared transaction."""

    def __str__(self) -> str:
        details = [
            f"prepared transaction {self.prepared!r}" if self.prepared is not None else None,
            f"process {self.pid}" if self.pid is not None else None,
            f"role {self.role}" if self.role else None,
            f"database {self.database}" if self.database else None,
            f"application {self.application}" if self.application else None,
            self.state,
            f"open for {self.seconds:,.0f} s" if self.seconds is not None else None,
        ]
        listed = ", ".join(filter(None, details)) or "not visible to this role"
        return f"{self.rows:,} rows cannot be exported until transaction {self.xid} ends ({listed})"


def find_held_back(database: Database, end: int) -> HeldBack | None:
    """The committed rows of transactions before ``end`` that an open transaction holds back; None if there are none."""
    sealed = read_horizon(database).sealed
    if sealed >= end:
        return None
    rows = sum(
        database.run("count_history", of={"archive": table}, first=sealed, sealed=end)[0][0]
        for table in FOLDERS
    )
    if not rows:
        return None
    (transaction,) = database.run("find_transaction", xid=sealed)
    return HeldBack(rows, sealed, *transaction)
