"""Durations, numbers and foreign texts, as people read them in a log line or on a terminal."""

__all__ = ["count", "printable", "printable_stack", "show_seconds"]


def printable(text: str) -> str:
    """The text in one line, without characters that would control the terminal."""
    # A message of the server has several lines, with indentation: one space is as readable, and stays one line.
    joined = " ".join(text.split()) if not text.isprintable() else text
    return "".join(c if c.isprintable() else "?" for c in joined)


def printable_stack(text: str) -> str:
    """A text of several lines, each with its indentation, without characters that would control the terminal."""
    return "\n".join(
        " " * (len(line) - len(line.lstrip(" "))) + printable(line.lstrip(" ")) for line in text.splitlines()
    )


def count(number: int, noun: str, one: str = "", many: str = "") -> str:
    """A number of things, and a verb for one or for several: `1 job stays`, `2 jobs stay`."""
    return f"{number} {noun}{'' if number == 1 else 's'} {one if number == 1 else many}".rstrip()


def show_seconds(seconds: float) -> str:
    """A duration for people: 0.4 ms, 35 ms, 4.2 s, 4 min 10 s, 3 h 20 min, 2 d 4 h."""
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    for big, small, name, below in ((60, 1, "min", "s"), (3600, 60, "h", "min"), (86400, 3600, "d", "h")):
        if whole < big * (60 if big < 3600 else 24) or big == 86400:
            first, rest = divmod(whole, big)
            return f"{first} {name}" + (f" {rest // small} {below}" if rest // small and first < 100 else "")
    raise AssertionError
