"""Which functions are accepted as handlers."""

from functools import partial
from unittest.mock import AsyncMock

import pytest

import trioboss
from trioboss.actors.handlers import check_handler
from trioboss.errors import UsageError


class Service:
    """Handlers of all kinds; the docstring of each says how it can run."""

    def plain(self, job):
        """In a thread."""

    async def in_trio(self, job):
        """As it is."""

    @staticmethod
    def plain_static(job):
        """In a thread."""

    @classmethod
    async def in_trio_for_all(cls, job):
        """As it is."""


class Callable:
    async def __call__(self, job):
        """As it is."""


class PlainCallable:
    def __call__(self, job):
        """In a thread."""


class Generator:
    async def __call__(self, job):
        """Not at all."""
        yield


@trioboss.App().worker("q")
async def task(job):
    """As it is."""


service = Service()
PLAIN = [
    lambda job: None,
    service.plain,
    Service.plain_static,
    partial(service.plain),
    partial(partial(lambda extra, job: None), 1),
    [].append,
    PlainCallable(),
    partial(PlainCallable()),
]
ASYNC = [
    service.in_trio,
    Service.in_trio_for_all,
    partial(service.in_trio),
    partial(partial(service.in_trio)),
    Callable(),
    partial(Callable()),
    AsyncMock(),
    task,
]


@pytest.mark.parametrize("handler", PLAIN)
def test_a_plain_function_is_accepted_only_for_threads(handler):
    check_handler(handler, thread=True, asyncio=False)
    with pytest.raises(UsageError, match="pass thread=True"):
        check_handler(handler, thread=False, asyncio=False)


@pytest.mark.parametrize("handler", ASYNC)
def test_an_async_function_is_refused_for_threads(handler):
    check_handler(handler, thread=False, asyncio=False)
    check_handler(handler, thread=False, asyncio=True)
    with pytest.raises(UsageError, match="thread=True"):
        check_handler(handler, thread=True, asyncio=False)


@pytest.mark.parametrize("kind", [Callable, PlainCallable, partial(Callable)])
@pytest.mark.parametrize("thread", [False, True])
def test_a_class_is_refused_by_its_name(kind, thread):
    with pytest.raises(UsageError, match=r"handler: (Plain)?Callable is a class: pass an instance of it"):
        check_handler(kind, thread=thread, asyncio=False)


def test_an_object_with_a_plain_call_is_refused_by_its_name():
    with pytest.raises(UsageError, match=r"handler: PlainCallable\.__call__ is not an async function"):
        trioboss.App().worker("q")(PlainCallable())


def test_an_object_whose_call_is_an_async_generator_is_refused_by_its_name():
    with pytest.raises(UsageError, match=r"handler: Generator\.__call__ is an async generator"):
        trioboss.App().worker("q")(Generator())
