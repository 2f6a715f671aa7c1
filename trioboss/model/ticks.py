"""The ticks of any schedule, whether it is a cron expression or a recurrence rule."""

from datetime import UTC, datetime
from itertools import islice

from trioboss.model.check import check_count, check_instant
from trioboss.model.cron import Cron, Ticks
from trioboss.model.option_names import checks_keywords
from trioboss.model.recurrence import NEVER, Recurrence, is_rule
from trioboss.model.schedule import check_cron, check_timezone

__all__ = ["make_ticks", "preview_schedule"]


def make_ticks(expression: str, timezone: str) -> Ticks:
    """The ticks of a schedule."""
    return Recurrence(expression, timezone) if is_rule(expression) else Cron(expression, timezone)


@checks_keywords
def preview_schedule(
    cron: str, count: int = 5, *, tz: str = "UTC", after: datetime | str | None = None
) -> list[datetime]:
    """The next ticks of a cron expression or a recurrence rule, in UTC: fewer than ``count`` if the rule ends.

    Needs no database. ``tz`` as in `schedule`; ``after``: from when on (now). At most 1000 ticks.
    """
    ticks = make_ticks(check_cron(cron), check_timezone(tz))
    start = datetime.now(UTC) if after is None else check_instant("after", after).astimezone(UTC)
    wanted = min(check_count("count", count), 1000)
    return list(islice(ticks.ticks(start, NEVER), wanted))
