"""Typed data: what each kind of type reads, and where a value does not fit."""

import dataclasses
import enum
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict
from uuid import UUID

import attrs
import pytest
from postponed_types import Letter, Reply

from trioboss.errors import UsageError
from trioboss.model.decoding import Misfit, make_decoder
from trioboss.model.payload import encode


class Colour(enum.Enum):
    RED = "red"


UserId = NewType("UserId", int)


@attrs.frozen
class Item:
    name: str
    price: float = 0.0
    _secret: int | None = None


@dataclasses.dataclass
class Address:
    street: str
    tags: list[str] = dataclasses.field(default_factory=list)
    hidden: int = dataclasses.field(default=7, init=False)


class Options(TypedDict):
    limit: int
    mode: NotRequired[Literal["fast", "slow"]]


@attrs.define
class Order:
    id: UUID
    items: list[Item]
    address: Address | None
    options: Options
    placed: datetime
    day: date
    at: time
    wait: timedelta
    total: Decimal
    colour: Colour
    pair: tuple[int, str]
    seen: frozenset[int]
    by_name: dict[str, Item]
    user: UserId
    note: Annotated[str, "text"] = ""
    anything: Any = None


ORDER = Order(
    id=UUID(int=5),
    items=[Item("a", 1.5, 3)],
    address=Address("Main", ["x"]),
    options={"limit": 3, "mode": "fast"},
    placed=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    day=date(2026, 1, 2),
    at=time(3, 4),
    wait=timedelta(seconds=1.5),
    total=Decimal("1.10"),
    colour=Colour.RED,
    pair=(1, "b"),
    seen=frozenset({1, 2}),
    by_name={"a": Item("b")},
    user=UserId(4),
    anything=[None],
)


def test_a_value_comes_back_as_it_was_sent():
    decoder = make_decoder(Order)

    data = decoder.encode(ORDER)
    encode(data)  # it is JSON that Postgres keeps

    assert decoder.decode(data) == ORDER


def test_a_class_may_contain_itself():
    decoder = make_decoder(Tree)

    assert decoder.decode({"leaf": 1, "below": [{"leaf": 2, "below": []}]}) == Tree(1, [Tree(2, [])])
    with pytest.raises(Misfit) as raised:
        decoder.decode({"leaf": 1, "below": [{"leaf": "x", "below": []}]})
    assert raised.value.where == ".below[0].leaf"


@attrs.frozen
class Tree:
    leaf: int
    below: "list[Tree]"


def test_fields_that_the_class_does_not_have_are_ignored():
    assert make_decoder(Item).decode({"name": "a", "colour": "red"}) == Item("a")


@pytest.mark.parametrize(
    ("type", "value", "where", "problem"),
    [
        (Item, {}, ".name", "is missing, Item needs it"),
        (Item, {"name": 5}, ".name", "5 is not text"),
        (Item, {"name": "a", "price": "dear"}, ".price", "'dear' is not a number"),
        (Item, {"name": "a", "price": True}, ".price", "True is not a number"),
        (Item, {"name": "a", "secret": "x"}, ".secret", "'x' is not int | None"),
        (Item, [1], "", "[1] is not an object, as Item needs"),
        (Item, None, "", "None is not an object, as Item needs"),
        (Address, {"street": "x", "tags": ["a", 5]}, ".tags[1]", "5 is not text"),
        (Address, {"street": "x", "tags": "a"}, ".tags", "'a' is not a list"),
        (Options, {"limit": 1, "mode": "warp"}, ".mode", "'warp' is not one of ['fast', 'slow']"),
        (Options, {"mode": "fast"}, ".limit", "is missing, Options needs it"),
        (list[int], [1, True], "[1]", "True is not a whole number"),
        (dict[str, int], {"a b": None}, "['a b']", "None is not a whole number"),
        (dict[str, int], [], "", "[] is not an object"),
        (tuple[int, int], [1], "", "[1] is not a list of 2"),
        (bool, 1, "", "1 is not true or false"),
        (None, 1, "", "1 is not null"),
        (Literal[1], True, "", "True is not one of [1]"),
        (UUID, "5", "", "'5' is not a UUID"),
        (UUID, 5, "", "5 is not a UUID"),
        (datetime, "yesterday", "", "'yesterday' is not a time in ISO 8601"),
        (Decimal, "x", "", "'x' is not a decimal number"),
        (Colour, "blue", "", "'blue' is not one of ['red']"),
        (Address | Item, {"name": 5}, ".name", "5 is not text"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_path(type, value, where, problem):
    with pytest.raises(Misfit) as raised:
        make_decoder(type).decode(value)

    if type == Address | Item:  # both members have a field that is wrong; one of them is named
        assert raised.value.where in (".name", ".street")
        return
    assert (raised.value.where, raised.value.problem) == (where, problem)


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (Letter, {"address": "a", "to": "b"}),
        (Letter, {"address": "a", "name": "n", "to": "b", "subject": "s", "copies": 2}),
        (Reply, {"id": 1}),
    ],
)
def test_a_typed_dict_with_postponed_annotations_needs_only_its_required_keys(type, value):
    assert make_decoder(type).decode(value) == value


@pytest.mark.parametrize(
    ("type", "value", "where"),
    [
        (Letter, {"to": "b"}, ".address"),  # required by its qualifier
        (Letter, {"address": "a"}, ".to"),  # required by its class
        (Letter, {"address": "a", "to": "b", "copies": "2"}, ".copies"),
        (Reply, {"text": "t"}, ".id"),
    ],
)
def test_a_typed_dict_with_postponed_annotations_names_the_key_that_does_not_fit(type, value, where):
    with pytest.raises(Misfit) as caught:
        make_decoder(type).decode(value)
    assert caught.value.where == where


def test_a_validator_of_the_class_is_a_misfit():
    @attrs.define
    class Positive:
        n: int = attrs.field(validator=attrs.validators.gt(0))

    with pytest.raises(Misfit, match=r"Positive: 'n' must be > 0"):
        make_decoder(Positive).decode({"n": -1})


@pytest.mark.parametrize("type", [complex, dict[int, str], "no type", object()])
def test_a_type_that_json_cannot_hold_is_refused_at_declaration(type):
    with pytest.raises(UsageError, match=r"^data: .* cannot be decoded"):
        make_decoder(type)


@pytest.mark.parametrize(
    ("type", "value", "problem"),
    [
        (Item, {"name": "a"}, "is not Item"),
        (Options, {"limit": "x"}, r"data\.limit: 'x' is not a whole number"),
        (list[int], ["x"], r"data\[0\]: 'x' is not a whole number"),
    ],
)
def test_a_value_of_another_type_is_refused_before_it_is_sent(type, value, problem):
    with pytest.raises(UsageError, match=problem):
        make_decoder(type).encode(value)


def test_a_decoder_of_the_program_is_used_as_it_is():
    class Upper:
        def decode(self, data):
            return data.upper()

        def encode(self, value):
            return value.lower()

    decoder = make_decoder(Upper())

    assert (decoder.decode("a"), decoder.encode("A")) == ("A", "a")


def test_pydantic_models_are_read_by_themselves():
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):
        items: list[int]
        on: date

    decoder = make_decoder(Model)
    value = Model(items=[1], on=date(2026, 1, 2))

    assert decoder.decode(decoder.encode(value)) == value
    with pytest.raises(Misfit, match="valid integer") as raised:
        decoder.decode({"items": [1, "x"], "on": "2026-01-02"})
    assert raised.value.where == ".items[1]"
    with pytest.raises(UsageError, match="is not "):
        decoder.encode({"items": []})


def _model(name, config=None, **fields):
    pydantic = pytest.importorskip("pydantic")
    return pydantic.create_model(name, __config__=config, **fields)


def test_a_pydantic_model_with_an_alias_reads_what_it_has_written():
    pydantic = pytest.importorskip("pydantic")
    model = _model("Model", x=(int, pydantic.Field(alias="theX")))
    decoder = make_decoder(model)

    assert decoder.encode(model(theX=3)) == {"theX": 3}
    assert decoder.decode({"theX": 3}) == model(theX=3)


def test_a_strict_pydantic_model_reads_what_it_has_written():
    model = _model(
        "Model", {"strict": True}, on=(datetime, ...), id=(UUID, ...), parts=(tuple[int, ...], ...)
    )
    decoder = make_decoder(model)
    value = model(on=datetime(2026, 1, 2, tzinfo=UTC), id=UUID(int=1), parts=(1, 2))

    assert decoder.decode(decoder.encode(value)) == value
    with pytest.raises(Misfit, match="valid integer"):
        decoder.decode(decoder.encode(value) | {"parts": ["1"]})


def test_a_field_that_a_pydantic_model_computes_is_not_sent():
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel, extra="forbid"):
        x: int

        @pydantic.computed_field
        def double(self) -> int:
            return 2 * self.x

    decoder = make_decoder(Model)

    assert decoder.decode(decoder.encode(Model(x=3))) == Model(x=3)


def test_a_pydantic_model_that_writes_a_field_under_another_name_than_it_reads_can_be_read_but_not_sent():
    pydantic = pytest.importorskip("pydantic")
    field = pydantic.Field(validation_alias="read", serialization_alias="written")
    model = _model("Model", x=(int, field))
    decoder = make_decoder(model)

    assert decoder.decode({"read": 3}) == model(read=3)
    with pytest.raises(
        UsageError, match=r"^data\.read: Field required; a worker could not read Model from it"
    ):
        decoder.encode(model(read=3))


def test_a_field_of_another_type_than_annotated_is_refused_before_it_is_sent():
    with pytest.raises(UsageError, match=r"data\.name: 5 is not text; a worker could not read Item from it"):
        make_decoder(Item).encode(Item(name=5))
