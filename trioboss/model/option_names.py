"""Names of options: a name that a call does not have is refused with the one that was probably meant."""

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping

__all__ = ["check_known", "find_option", "keyword_names"]

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
        raise TypeError(f"{call}: unexpected option {name!r}: {hint}The options are {', '.join(names)}")


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
