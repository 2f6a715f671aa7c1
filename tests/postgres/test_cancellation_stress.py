"""Operations cancelled at random instants: the outcome that the caller sees must be the one in the database."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator

import attrs
import psycopg
import trio
from postgres_helpers import ECHO, Table, bind

from trioboss.postgres import BoundStatement, Connection, open_connection
from trioboss.sql import Statement

TASKS = 4
OPERATIONS = 4000
ENOUGH = 20  # operations of each kind that are cancelled, and that complete, for the test to prove something
SLOW_MACHINE = 20.0  # seconds after which ENOUGH has to do

KINDS = ("query", "execute", "run", "statements", "transactions", "block")
# The rows that an operation of each kind has stored if it completed.
STORED = {"query": "", "execute": "a", "run": "a", "transactions": "a", "statements": "ab", "block": "ab"}

SLOW_ECHO = Statement("slow_echo", "select $1::text from pg_sleep($2::float8)", ("value", "seconds"))


@attrs.define(eq=False)
class Ledger:
    """The outcome of each numbered operation, as its caller saw it."""

    outcomes: dict[int, tuple[str, str]] = attrs.field(factory=dict)
    counts: Counter[str] = attrs.field(factory=Counter)
    wrong: list[str] = attrs.field(factory=list)
    started: float = attrs.field(factory=trio.current_time)

    def record(self, number: int, kind: str, outcome: str) -> None:
        self.outcomes[number] = (kind, outcome)
        self.counts[f"{kind} {outcome}"] += 1

    def is_complete(self) -> bool:
        fewest = min(self.counts[f"{kind} {outcome}"] for kind in KINDS for outcome in ("cancelled", "done"))
        return fewest >= ENOUGH and (
            len(self.outcomes) >= OPERATIONS or trio.current_time() - self.started >= SLOW_MACHINE
        )


@attrs.define(eq=False)
class Operator:
    """One task with its own connection, which runs random operations."""

    dsn: str
    table: Table
    ledger: Ledger
    chance: random.Random
    numbers: Iterator[int]
    next_duration: float = 0.0

    async def work(self) -> None:
        while not self.ledger.is_complete():
            async with open_connection(self.dsn) as connection:
                # So that cancel requests also hit runs of several transactions.
                connection.cancel_retry = 0.001
                # A connection must not be closed because the machine is slow.
                connection.cancel_grace = 60.0
                while not self.ledger.is_complete() and not connection.closed:
                    await self.operate(connection)
                    await self.check(connection)

    async def operate(self, connection: Connection) -> None:
        kind = self.chance.choice(KINDS)
        number = next(self.numbers)
        outcome = "cancelled"
        with trio.move_on_after(self.choose_times()):
            try:
                await getattr(self, kind)(connection, number)
                outcome = "done"
            except psycopg.errors.QueryCanceled:
                outcome = "second failed"
        self.ledger.record(number, kind, outcome)

    async def check(self, connection: Connection) -> None:
        """Check that an uncancelled query gets its own result, unless the connection is closed."""
        if connection.closed:
            self.ledger.counts["closed"] += 1
            return
        tag = str(self.chance.random())
        ((result,),) = await connection.run([[bind(ECHO, tag)]])
        self.expect(result.get_value(0, 0) == tag.encode(), "a query got the result of another one")

    def expect(self, truth: bool, problem: str) -> None:
        if not truth:
            self.ledger.wrong.append(problem)

    # -- times

    def choose_times(self) -> float:
        """Choose how long the first statement takes, and return the time after which the operation is cancelled.

        A cancel request takes some milliseconds to arrive. Most statements take about as long, so that some complete
        before it and some do not. A few take far too long, and a few are not cancelled: so there are cancelled and
        completed operations on a slow machine, too.
        """
        limit = self.chance.uniform(0, 0.004)
        self.next_duration = self.random_duration()
        match self.chance.randrange(10):
            case 0:
                self.next_duration = 60.0
            case 1:
                limit = math.inf
        return limit

    def random_duration(self) -> float:
        return self.chance.choice([0.0, self.chance.uniform(0, 0.006)])

    def duration(self) -> float:
        """Return the duration chosen for the first statement of an operation, and a random one for the others."""
        duration, self.next_duration = self.next_duration, self.random_duration()
        return duration

    # -- operations

    def insert(self, number: int, s: str) -> BoundStatement:
        text = f"insert into {self.table.name} select $1, $2 from pg_sleep($3::float8)"
        return bind(Statement("insert", text, ("i", "s", "seconds")), number, s, self.duration())

    async def query(self, connection: Connection, number: int) -> None:
        ((result,),) = await connection.run([[bind(SLOW_ECHO, number, self.duration())]])
        self.expect(result.get_value(0, 0) == str(number).encode(), "a query got the result of another one")

    async def execute(self, connection: Connection, number: int) -> None:
        cursor = await connection.execute(
            f"insert into {self.table.name} select %s, 'a' from pg_sleep(%s) returning i",
            [number, self.duration()],
        )
        self.expect(await cursor.fetchone() == (number,), "a query got the result of another one")

    async def run(self, connection: Connection, number: int) -> None:
        await connection.run([[self.insert(number, "a")]])

    async def statements(self, connection: Connection, number: int) -> None:
        await connection.run([[self.insert(number, "a"), self.insert(number, "b")]])

    async def transactions(self, connection: Connection, number: int) -> None:
        await connection.run([[self.insert(number, "a")], [bind(SLOW_ECHO, number, self.duration())]])

    async def block(self, connection: Connection, number: int) -> None:
        async with connection.transaction():
            await connection.run([[self.insert(number, "a")]])
            await connection.execute(f"insert into {self.table.name} values (%s, 'b')", [number])


async def test_no_outcome_is_ever_reported_wrongly(server_dsn, table):
    ledger = Ledger()
    numbers = itertools.count()
    with trio.fail_after(110):
        async with trio.open_nursery() as nursery:
            for seed in range(TASKS):
                operator = Operator(server_dsn, table, ledger, random.Random(seed), numbers)
                nursery.start_soon(operator.work)
    cursor = await table.admin.execute(f"select i, string_agg(s, '' order by s) from {table.name} group by i")
    stored = dict(await cursor.fetchall())

    for number, (kind, outcome) in ledger.outcomes.items():
        expected = "" if outcome == "cancelled" else STORED[kind]
        if stored.get(number, "") != expected or (outcome == "second failed" and kind != "transactions"):
            ledger.wrong.append(f"{kind} {outcome}, but stored is {stored.get(number)!r}")

    assert ledger.wrong[:10] == []
    assert ledger.counts["closed"] < 10, ledger.counts
