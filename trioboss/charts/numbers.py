"""Numbers, durations and times as people write them."""

from datetime import datetime, timedelta

__all__ = ["NONE", "between", "change", "count", "duration", "instant", "length", "percent", "short_count"]

NONE = "\N{EN DASH}"
"""Where there is no number."""


def count(number: float | None) -> str:
    """12,345"""
    return NONE if number is None else f"{number:,.0f}"


def short_count(number: float) -> str:
    """12.3 k"""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size * 0.99995:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}" if number != int(number) else str(int(number))


def percent(share: float | None) -> str:
    """3.4 %; a share above 0 is never written as 0 %, one below 1 never as 100 %."""
    if share is None:
        return NONE
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 < share < 1:
        return "> 99.9 %"
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def duration(seconds: float | None) -> str:
    """840 ms, 3.2 s, 4 min, 2.5 h, 12 d"""
    if seconds is None:
        return NONE
    if seconds < 0.0995:
        return f"{1000 * seconds:.2g} ms" if seconds else "0 s"
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    for size, unit in ((86400 * 2, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / (86400 if unit == 'd' else size):.3g} {unit}"
    return f"{seconds:.3g} s"


def instant(time: datetime | None, period: timedelta | None = None) -> str:
    """2 Mar 09:00, or 2 Mar where periods are days."""
    if time is None:
        return NONE
    day = f"{time.day} {time:%b}"
    return day if period is not None and period >= timedelta(days=1) else f"{day} {time:%H:%M}"


def between(first: datetime | None, last: datetime | None) -> str:
    """From 2 Mar 09:00 to 3 Mar 12:30, in short."""
    return instant(first) if first == last else f"{instant(first)} {NONE} {instant(last)}"


def length(period: timedelta) -> str:
    """24 hours, 7 days"""
    hours = round(period / timedelta(hours=1))
    if hours % 24 or hours == 24:
        return f"{hours} hour{'' if hours == 1 else 's'}"
    return f"{hours // 24} days"


def change(now: float | None, before: float | None) -> str | None:
    """+12 %, from one number to another; None if there is none to compare with."""
    if now is None or not before:
        return None
    share = 100 * (now - before) / before
    if abs(share) < 0.5:
        return "no change"
    sign = "+" if share > 0 else "\N{MINUS SIGN}"
    return f"{sign}{abs(share):,.0f} %"
