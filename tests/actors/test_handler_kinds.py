"""Which functions are accepted as handlers."""

import functools
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


def decorate(function):
    """A decorator that was written for plain functions."""

    @functools.wraps(function)
    def call(*arguments):
        return function(*arguments)

    return call


def test_an_async_function_behind_a_plain_decorator_is_told_what_is_wrong():
    with pytest.raises(
        UsageError, match=r"Service\.in_trio is not an async function: its decorator replaces"
    ):
        trioboss.App().worker("q")(decorate(service.in_trio))


@pytest.mark.parametrize("thread", [False, True])
def test_a_generator_is_refused_by_its_name(thread):
    def count_up(job):
        yield 1

    with pytest.raises(UsageError, match="count_up is a generator: a handler returns its output"):
        check_handler(count_up, thread=thread, asyncio=False)


async def takes_nothing():
    pass


async def takes_two(job, other):
    pass


@pytest.mark.parametrize("handler", [takes_nothing, takes_two, partial(takes_two, None, None)])
def test_a_function_that_does_not_take_a_job_is_refused_by_its_name(handler):
    with pytest.raises(UsageError, match=r"takes_(nothing|two) cannot be called with one argument, the job"):
        check_handler(handler, thread=False, asyncio=False)
