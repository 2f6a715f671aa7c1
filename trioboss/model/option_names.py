"""Names of options: a name that a call does not have is refused with the one that was probably meant."""

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, TypeVar, cast

__all__ = ["check_known", "checks_init_keywords", "checks_keywords", "find_option", "keyword_names"]

T = TypeVar("T", bound=Callable[..., object])

_CAPITAL = re.compile(r"(?<=[a-z0-9])[A-Z]")
# pg-boss has an option for each unit; here one option takes seconds or a timedelta.
_UNIT = re.compile(r"_(millis|ms|seconds|minutes|hours|days)$")


def check_known(
    call: str,
    options: Iterable[str],
    known: Iterable[str],
    own: Iterable[str] = (),
    other: Mapping[str, str] | None = None,
) -> None:
    """Raise TypeError for an option that the call does not have, with the one that was probably meant, and all of them.

    ``own``: the keywords of the call itself, which are never among ``options``. ``other``: names that pg-boss has, with
    what each is here.
    """
    for name in options:
        if name in known:
            continue
        if other is not None and name in other:
            raise TypeError(f"{call}: unexpected option {name!r}: in trioboss it is {other[name]}")
        names = sorted({*known, *own} - {name})
        meant = find_option(name, names) or _nearest(name, names)
        hint = f"did you mean {meant}? " if meant else ""
        listed = f"The options are {', '.join(names)}" if names else "It has no options"
        raise TypeError(f"{call}: unexpected option {name!r}: {hint}{listed}")


def find_option(name: str, names: Iterable[str]) -> str | None:
    """The option that has this name in pg-boss, by rule: in camel case, or with a unit of time; for a message."""
    snake = _snake(name)
    base = _UNIT.sub("", snake)
    if snake in names:
        return repr(snake)
    for each in (base, f"{base}_seconds"):
        if base != snake and each in names:
            return f"{each!r}, in seconds or as a timedelta"
    return None


def _nearest(name: str, names: Iterable[str]) -> str | None:
    found = difflib.get_close_matches(_snake(name), names, 1)
    return repr(found[0]) if found else None


def _snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: f"_{found[0]}", name).lower()


def keyword_names(function: Callable[..., object]) -> list[str]:
    """The parameters of a function that have names of their own, and can only be given by them."""
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]


def checks_keywords(target: T) -> T:
    """Decorate a function, or a class and with it all of its public methods: an unknown keyword is answered as an
    unknown option, and not with Python's own TypeError, which does not say what is known.

    Functions with ``**options`` stay as they are: they call `check_known`, and know the names that pg-boss has.
    """
    if not isinstance(target, type):
        return cast("T", _checking(cast("FunctionType", target)))
    for name in dir(target):
        method = inspect.getattr_static(target, name)
        if not name.startswith("_") and isinstance(method, FunctionType):
            setattr(target, name, _checking(method))
    return target


def checks_init_keywords(kind: T) -> T:
    """Decorate a class: the same for the arguments with which it is made."""
    init: FunctionType = inspect.getattr_static(kind, "__init__")
    type.__setattr__(cast("type", kind), "__init__", _checking(init, cast("type", kind).__name__))
    return kind


def _checking(function: FunctionType, name: str | None = None) -> Callable[..., Any]:
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return function
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = frozenset(each.name for each in parameters if each.kind in named) - {"self"}
    call = name or function.__name__

    # An async function stays one, for those who ask `inspect` about it, and for mocks.
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def checking(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.keys() <= known:
                check_known(call, kwargs, known)
            return await function(*args, **kwargs)

        return checking

    @functools.wraps(function)
    def checking_at_once(*args: Any, **kwargs: Any) -> Any:
        if not kwargs.keys() <= known:
            check_known(call, kwargs, known)
        return function(*args, **kwargs)

    return checking_at_once
