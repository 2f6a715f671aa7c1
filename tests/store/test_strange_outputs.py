"""The value that a handler returns may be of any class: it fails its own job at worst, and no other."""

import itertools
import json
from collections import OrderedDict, defaultdict
from contextlib import suppress
from enum import StrEnum
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import trioboss
from trioboss.actors.leased_job import DeadLetterJob, RetryJob
from trioboss.errors import PayloadError
from trioboss.events import ActorRestarted, Event, JobCompleted, JobFailed, JobStarted
from trioboss.model.described_error import describe_error, error_line
from trioboss.model.payload import encode, is_large
from trioboss.testing import record


class OwnDict(dict):
    """Computes its items, and fails."""

    def items(self):
        raise RuntimeError("lazy")

    keys = values = __iter__ = __len__ = items


class EndlessDict(dict):
    """Has items for ever."""

    def items(self):
        return ((str(number), number) for number in itertools.count())


class EndlessList(list):
    """Has elements for ever."""

    def __iter__(self):
        return itertools.count()


class Pretender:
    """Says that it is a dict."""

    @property
    def __class__(self):
        return dict


class BadText(str):
    """A text that cannot be looked into."""

    def isascii(self):
        raise RuntimeError("no")

    __contains__ = encode = isascii


class Unspeakable(Exception):
    """Raises in every method."""

    def __str__(self):
        raise KeyboardInterrupt

    __repr__ = __str__


class Unreadable(BaseException):
    """Raises whatever is asked of it."""

    def __getattribute__(self, name):
        raise RuntimeError(name)


class Liar(ValueError):
    """Says that it is a cancellation."""

    @property
    def __class__(self):
        return trio.Cancelled


class Nobody:
    """Has no class."""

    @property
    def __class__(self):
        raise SystemExit


class Unequal:
    """Cannot be compared, nor shown, and is neither true nor false."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("compared")

    __bool__ = __lt__ = __gt__ = __len__ = __repr__ = lambda self, *_: 1 / 0


class Endless(BaseExceptionGroup):
    """A group that says it contains itself."""

    @property
    def exceptions(self):
        return (self,)


def nested(depth: int) -> BaseException:
    error: BaseException = ValueError("inner")
    for _ in range(depth):
        error = BaseExceptionGroup("outer", [error])
    return error


def chained(length: int) -> BaseException:
    """An error with so many others behind it, as a loop of retries leaves them."""
    error: BaseException = ValueError("first")
    for _ in range(length):
        error, before = ValueError("next"), error
        error.__context__ = before
    return error


def in_a_circle() -> BaseException:
    """Two errors, each the cause of the other."""
    error, other = ValueError("one"), ValueError("other")
    error.__cause__, other.__cause__ = other, error
    return error


OUTPUTS: list[Any] = [
    OwnDict(a=1),
    EndlessDict(a=1),
    EndlessList([1]),
    Pretender(),
    Nobody(),
    [Nobody()],
    {Unequal: 1},
    Unequal(),
    BadText("x"),
    {BadText("x"): 1},
    object(),
]
ERRORS: list[Any] = [
    Unspeakable(),
    nested(900),
    nested(5_000),
    chained(20_000),
    in_a_circle(),
    Endless("group", [ValueError()]),
    Unreadable(),
    Liar("not cancelled"),
    RetryJob("soon", None),
    RetryJob(Unequal(), None),
    RetryJob("soon", Nobody()),
    DeadLetterJob(Nobody()),
    SystemExit(3),
    KeyboardInterrupt(),
]


@pytest.mark.parametrize("how", ["trio", "batch", "thread", "asyncio"])
async def test_a_strange_output_or_error_ends_its_own_job_and_no_other(boss, how):
    await boss.create_queue("q", retry_limit=0)
    strange = [*OUTPUTS, *ERRORS]

    def answer(given):
        job = given[0] if how == "batch" else given
        if job.data == "fine":
            return {job.id: "fine"} if how == "batch" else "fine"
        value = strange[job.data]
        if job.data >= len(OUTPUTS):
            raise value
        return {job.id: value} if how == "batch" and job.data % 2 else value

    async def handler(given):
        return answer(given)

    with trio.fail_after(120):
        async with record(boss.events()) as recorder:
            for number in range(len(strange)):
                await boss.send("q", number)
            for _ in range(5):
                await boss.send("q", "fine")
            options = {"batch": {"batch_size": 1}, "thread": {"thread": True}, "asyncio": {"asyncio": True}}
            await boss.work(
                "q", answer if how == "thread" else handler, concurrency=3, **options.get(how, {})
            )
            await recorder.wait_for(
                Event, lambda event: isinstance(event, JobCompleted | JobFailed), count=len(strange) + 5
            )
            assert len(recorder.of(JobCompleted)) >= 5
            assert not recorder.of(ActorRestarted)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.lists(inner, max_size=3).map(EndlessList),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(OwnDict),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(EndlessDict),
        st.dictionaries(st.one_of(st.integers(), st.none(), st.text()), inner, max_size=3),
        st.sampled_from([Pretender, Unequal]).map(lambda kind: kind()),
        st.text(max_size=3).map(BadText),
    ),
    max_leaves=10,
)


@given(json_values)
def test_encoding_any_value_gives_text_or_a_payload_error(value):
    with suppress(PayloadError):
        assert isinstance(encode(value), str)
    is_large(value)


def test_a_value_without_a_class_is_refused():
    for value in (Nobody(), [Nobody()], {"a": Nobody()}):
        with pytest.raises(PayloadError, match="Nobody is not JSON"):
            encode(value)


def test_subclasses_that_only_keep_their_items_are_encoded():
    class Colour(StrEnum):
        RED = "red"

    values = {
        "ordered": OrderedDict(a=1),
        "default": defaultdict(int, b=2),
        "enum": Colour.RED,
        "float": 1e20,
    }
    assert (
        encode(values) == '{"ordered":{"a":1},"default":{"b":2},"enum":"red","float":100000000000000000000.0}'
    )


@pytest.mark.parametrize("place", range(len(ERRORS)))
def test_every_error_can_be_described(place):
    assert describe_error(ERRORS[place])
    assert error_line(ERRORS[place])


def test_of_a_long_chain_of_causes_few_are_read():
    """The traceback module reads all: that of 20,000 kept the event loop for most of a minute."""
    reads = 0

    class Counting(ValueError):
        def __str__(self) -> str:
            nonlocal reads
            reads += 1
            return "counted"

    error: BaseException = Counting()
    for _ in range(5_000):
        error, before = Counting(), error
        error.__context__ = before

    described = json.loads(describe_error(error) or "")

    assert reads < 1_000
    assert described["stack"].endswith("Counting: counted")


@pytest.mark.parametrize("message", ["x" * 5_000_000, "line\n" * 1_000_000])
def test_the_stack_of_an_error_with_a_huge_message_has_its_beginning_only(message):
    """To format it as a whole takes so long that the leases of other jobs are not renewed meanwhile."""
    try:
        raise ValueError(message)
    except ValueError as error:
        described = json.loads(describe_error(error) or "")

    assert "raise ValueError(message)" in described["stack"]
    assert len(described["stack"]) < 1_000
    assert 8_000 <= len(described["message"]) < 8_100


@pytest.mark.parametrize(
    ("value", "large"),
    [
        ({}, False),
        ("x" * 1000, False),
        ("x" * 100_000, False),
        ("x" * 300_000, True),
        ("x" * 10_000_000, True),
        (list(range(50_000)), True),
        ([[1] * 150] * 150, True),
    ],
)
def test_only_a_large_value_is_encoded_in_a_thread(value, large):
    assert is_large(value) is large


async def test_many_large_outputs_at_once_are_settled_in_pieces(dsn):
    """Forty outputs of a megabyte end together, one of which the database cannot hold; the loop is never blocked."""
    output = {"text": "x" * 1_000_000}
    proceed = trio.Event()

    async def handler(job: trioboss.Job) -> object:
        await proceed.wait()
        return output

    with trio.fail_after(120):
        async with trioboss.open_boss(dsn, migrate=False) as boss, record(boss.events()) as recorder:
            await boss.create_queue("q")
            for _ in range(40):
                await boss.send("q")
            await boss.work("q", handler, concurrency=40)
            await recorder.wait_for(JobStarted, count=40)
            proceed.set()
            await recorder.wait_for(JobCompleted, count=40)
            assert not recorder.of(JobFailed)


async def test_an_output_that_the_database_rejects_fails_its_job_alone(dsn, database):
    """A trigger stands for whatever the database rejects."""
    with trio.fail_after(60):
        async with trioboss.open_boss(dsn, migrate=False) as boss, record(boss.events()) as recorder:
            await boss.create_queue("q", retry_limit=0)
            database.execute(
                "alter table trioboss.archive add constraint no_bad_output check (output <> '\"bad\"') not valid"
            )
            ready = trio.Event()

            async def handler(job: trioboss.Job) -> object:
                await ready.wait()
                return job.data

            for value in (*range(20), "bad", *range(20)):
                await boss.send("q", value)
            await boss.work("q", handler, concurrency=41)
            await recorder.wait_for(JobStarted, count=41)
            ready.set()
            await recorder.wait_for(JobCompleted, count=40)
            (failed,) = await recorder.wait_for(JobFailed)
            assert "no_bad_output" in failed.error
            database.execute("alter table trioboss.archive drop constraint no_bad_output")
            (job,) = await boss.find_jobs("q", state="failed")
            assert job.data == "bad"
            assert not recorder.of(ActorRestarted)
