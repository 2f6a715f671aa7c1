"""Types whose annotations are text: those of a module with postponed evaluation."""

from __future__ import annotations

from typing import Annotated, NotRequired, Required, TypedDict

import typing_extensions


class Sender(TypedDict, total=False):
    """Not total, with a key that is required nevertheless."""

    address: Required[str]
    name: str


class Letter(Sender):
    """Total, with a key that is not required, and those of its base."""

    to: str
    subject: NotRequired[str]
    copies: Annotated[NotRequired[int], "a number"]


class Reply(typing_extensions.TypedDict, total=False):
    """The TypedDict that pydantic asks for, with a qualifier of Python 3.13."""

    id: typing_extensions.Required[typing_extensions.ReadOnly[int]]
    text: typing_extensions.ReadOnly[str]
