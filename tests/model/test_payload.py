"""JSON comes back as it was sent, or is refused with the path of the bad value."""

import decimal
import enum
import json
import math
import sys
import uuid
from datetime import UTC, datetime

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trioboss
from trioboss import PayloadError
from trioboss.model.described_error import describe_error
from trioboss.model.payload import encode

_numbers = (
    st.integers()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(1e15, 1e17)
    | st.sampled_from([2**13_000 - 1, -(2**13_000) + 1, sys.float_info.max, 5e-324, 1e16, 9007199254740993])
).filter(lambda x: not (x == 0 and math.copysign(1, x) < 0))
_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_scalars = st.none() | st.booleans() | _numbers | _texts
_documents = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_texts, inner, max_size=5),
    max_leaves=15,
)


@pytest.fixture(scope="module")
def postgres(server_dsn):
    """A connection, for the conversion of text to jsonb."""
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        yield connection


def types_of(value):
    """The shape of a document in which 1, 1.0 and True are different."""
    if isinstance(value, dict):
        return {key: types_of(item) for key, item in value.items()}
    if isinstance(value, list):
        return [types_of(item) for item in value]
    return type(value)


@settings(max_examples=300, deadline=None)
@given(_documents)
def test_an_accepted_document_comes_back_from_postgres_equal_and_of_the_same_types(postgres, document):
    (back,) = postgres.execute("select %s::text::jsonb", [encode(document)]).fetchone()

    assert back == document
    assert types_of(back) == types_of(document)


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


def test_an_enumeration_of_text_or_numbers_is_sent_as_its_value():
    assert json.loads(encode([Colour.RED, Size.BIG])) == ["red", 3]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (math.nan, "nan is not JSON"),
        (math.inf, "inf is not JSON"),
        (-math.inf, "-inf is not JSON"),
        (-0.0, "-0.0 would come back as 0.0"),
        ("a\0b", "NUL"),
        ("\ud83d", "surrogate"),
        (b"bytes", "bytes is not JSON"),
        ((1, 2), "tuple is not JSON"),
        ({1, 2}, "set is not JSON"),
        (decimal.Decimal("1.10"), "Decimal is not JSON"),
        (datetime(2030, 1, 1, tzinfo=UTC), "datetime is not JSON"),
        (uuid.UUID(int=0), "UUID is not JSON"),
        (1j, "complex is not JSON"),
        (object(), "object is not JSON"),
        ({1: "a"}, "the key 1 is not a string"),
        ({None: "a"}, "the key None is not a string"),
        (2**13_000, "more than 13000 bits"),
    ],
)
def test_a_value_that_would_not_come_back_equal_is_refused_with_its_path(value, problem):
    with pytest.raises(PayloadError) as refusal:
        encode({"orders": [{"ok": 1}, {"bad": value}]})

    assert refusal.value.path == "data.orders[1].bad"
    assert problem in refusal.value.problem
    assert str(refusal.value) == f"data.orders[1].bad: {refusal.value.problem}"


@pytest.mark.parametrize(("key", "problem"), [("a\0", "NUL"), ("\ud800", "surrogate")])
def test_a_key_that_postgres_cannot_hold_is_refused_with_its_path(key, problem):
    with pytest.raises(PayloadError, match=problem) as refusal:
        encode({"a": {key: 1}})

    assert refusal.value.path == f"data.a[{key!r}]"
    assert refusal.value.path.isprintable()


def test_the_path_of_a_document_that_is_bad_itself_is_its_name():
    with pytest.raises(PayloadError, match=r"^output: set is not JSON"):
        encode(set(), "output")


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def test_200_levels_are_accepted(postgres):
    (back,) = postgres.execute("select %s::text::jsonb", [encode(nested(200))]).fetchone()

    assert back == nested(200)


@pytest.mark.parametrize("depth", [201, 100_000])
def test_deeper_is_refused_with_its_path(depth):
    with pytest.raises(PayloadError, match="more than 200 deep") as refusal:
        encode(nested(depth))

    assert refusal.value.path == "data" + "[0]" * 200


def test_a_circle_is_refused_as_too_deep():
    circle = {}
    circle["me"] = circle

    with pytest.raises(PayloadError, match="more than 200 deep"):
        encode(circle)


def test_size_is_counted_in_bytes_of_json():
    assert len(encode("é" * 10, max_bytes=62)) == 62
    with pytest.raises(PayloadError, match=r"^data: 62 bytes of JSON, 61 are allowed"):
        encode("é" * 10, max_bytes=61)


def test_a_large_float_counts_as_it_is_written_out():
    with pytest.raises(PayloadError, match="bytes of JSON"):
        encode([1e308] * 10, max_bytes=1000)


def test_the_limit_is_10_mb_unless_said_otherwise():
    with pytest.raises(PayloadError, match="10485760 are allowed"):
        encode("x" * 10 * 1024 * 1024)


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no message")


def raised(error):
    try:
        raise error
    except BaseException as caught:
        return caught


def test_an_exception_is_described_by_name_message_and_stack():
    described = json.loads(describe_error(raised(ValueError("no such address"))))

    assert described["name"] == "ValueError"
    assert described["message"] == "no such address"
    assert "Traceback" in described["stack"]
    assert "raise error" in described["stack"]


def test_an_attribute_that_is_a_tuple_is_kept_as_a_list():
    described = json.loads(describe_error(trioboss.QueueInUse("dead", ["orders", "mail"])))

    assert (described["queue"], described["users"]) == ("dead", ["orders", "mail"])


@pytest.mark.parametrize(
    "error",
    [
        ValueError("nul \0 in it"),
        ValueError("half \ud83d of a pair"),
        ValueError("long " * 100_000),
        ExceptionGroup("several \0", [ValueError("\ud800"), KeyError("b")]),
        KeyboardInterrupt(),
        Silent(),
    ],
)
def test_any_exception_can_be_stored_and_is_short_enough_to_read(postgres, error):
    text = describe_error(raised(error))
    (back,) = postgres.execute("select %s::text::jsonb", [text]).fetchone()

    assert back["name"] == type(error).__name__
    assert len(text) < 40_000


def test_a_huge_traceback_is_cut_to_its_beginning_and_its_end():
    def dig(depth):
        dig(depth - 1) if depth else [][depth]

    with pytest.raises(IndexError) as caught:
        dig(300)
    caught.value.__cause__ = ValueError("\n".join(map(str, range(10_000))))
    stack = json.loads(describe_error(caught.value))["stack"]

    assert len(stack) < 10_000
    assert "characters left out" in stack
    assert stack.rstrip().endswith("IndexError: list index out of range")


def test_of_a_long_message_the_beginning_and_the_end_are_kept():
    message = json.loads(describe_error(ValueError("first" + "x" * 100_000 + "last")))["message"]

    assert message.startswith("first")
    assert message.endswith("last")
    assert "characters left out" in message


def test_text_is_an_error_message():
    assert json.loads(describe_error("out of \0 paper")) == {"message": "out of \\0 paper"}


def test_an_error_document_is_kept_as_it_is():
    assert json.loads(describe_error({"code": [4, 2]})) == {"code": [4, 2]}


def test_no_error_is_described_as_none():
    assert describe_error(None) is None


def test_an_error_document_that_is_no_json_is_refused_with_its_path():
    with pytest.raises(PayloadError, match=r"^error\.code: set is not JSON"):
        describe_error({"code": set()})


def test_a_large_number_of_a_class_of_its_own_is_written_as_a_number():
    class Metres(float):
        def __repr__(self) -> str:
            return f"{float(self)} m"

    assert json.loads(encode(Metres(1e17), "data", 1000)) == 1e17
