"""Queries of many shapes, as values: each can be built on any DataFrame of jobs."""

from collections.abc import Callable

import attrs
from hypothesis import strategies as st
from pyspark.sql import DataFrame

COLUMNS = ("id", "queue", "state", "priority", "singleton_key", "seq")
"""The columns that the queries use, of the table `archive`."""

CONDITIONS = [
    "queue = 'email'",
    "queue in ('other', 'none')",
    "queue <> 'email'",
    "priority > 1 and state = 'completed'",
    "singleton_key like 'key1%' or priority = 0",
    "singleton_key is null",
    "not (priority <=> 2)",
    "seq % 2 = 0",
    "id = 'not-a-uuid'",
]


@attrs.frozen
class Base:
    """All rows; by the DataFrame, or by a view on it."""

    by_view: bool

    def build(self, frame: DataFrame, view: DataFrame) -> DataFrame:
        return (view if self.by_view else frame).select(*COLUMNS)


@attrs.frozen
class Where:
    rows: "Rows"
    condition: str

    def build(self, frame: DataFrame, view: DataFrame) -> DataFrame:
        return self.rows.build(frame, view).where(self.condition)


@attrs.frozen
class Combined:
    """Two sets of rows as one."""

    how: str
    left: "Rows"
    right: "Rows"

    def build(self, frame: DataFrame, view: DataFrame) -> DataFrame:
        left, right = self.left.build(frame, view), self.right.build(frame, view)
        if self.how in ("union", "exceptAll", "intersect"):
            return getattr(left, self.how)(right)
        if self.how == "inner":
            return left.join(right.select("seq").distinct(), "seq").select(*COLUMNS)
        return left.join(right.select("seq"), "seq", self.how).select(*COLUMNS)


Rows = Base | Where | Combined

ENDS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "rows": lambda rows: rows,
    "count": lambda rows: rows.groupBy().count(),
    "by queue": lambda rows: rows.groupBy("queue", "state").count(),
    "distinct": lambda rows: rows.select("queue").distinct(),
    "first": lambda rows: rows.orderBy("seq", "id").limit(3),
}


@attrs.frozen
class Ask:
    """A query: rows, and what is done with them."""

    rows: Rows
    end: str

    def build(self, frame: DataFrame, view: DataFrame) -> DataFrame:
        return ENDS[self.end](self.rows.build(frame, view))


@attrs.frozen
class Insert:
    """New rows appear between two queries."""

    queue: str
    count: int


@attrs.frozen
class Delete:
    """Rows vanish between two queries, as those of jobs that are retried do."""

    remainder: int


def rows() -> st.SearchStrategy[Rows]:
    hows = st.sampled_from(["union", "exceptAll", "intersect", "inner", "left_anti", "left_semi"])
    return st.recursive(
        st.builds(Base, st.booleans()) | st.builds(Where, st.builds(Base, st.booleans()), conditions()),
        lambda inner: st.builds(Where, inner, conditions()) | st.builds(Combined, hows, inner, inner),
        max_leaves=3,
    )


def conditions() -> st.SearchStrategy[str]:
    return st.sampled_from(CONDITIONS)


def steps() -> st.SearchStrategy[list[Ask | Insert | Delete]]:
    """Queries, with changes of the table between them."""
    ask = st.builds(Ask, rows(), st.sampled_from(sorted(ENDS)))
    change = st.builds(Insert, st.sampled_from(["email", "other"]), st.integers(1, 9)) | st.builds(
        Delete, st.integers(0, 3)
    )
    turns = st.lists(st.tuples(ask, st.none() | change), min_size=2, max_size=4)
    return turns.map(lambda found: [step for turn in found for step in turn if step is not None])


def collected(frame: DataFrame) -> list[tuple[object, ...]]:
    """The rows in an order that both sides have."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)
