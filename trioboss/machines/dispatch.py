"""When does a dispatcher ask for jobs, for how many, and when may it sleep?"""

import math

import attrs

__all__ = ["Ask", "DispatchMachine", "Rest"]

_RUSH = 2  # full claims in a row after which senders need not wake us
_LOOKS = 10  # fruitless claims in a row without waiting
_LOOK_INTERVAL = 0.05  # seconds between fruitless claims after that
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 10.0  # seconds between claims while the database fails


@attrs.frozen
class Ask:
    """Claim so many jobs; ``ripen`` first those whose time has come. ``asleep``: the mark, if it changes."""

    limit: int
    ripen: bool
    asleep: bool | None


@attrs.frozen
class Rest:
    """Do nothing until this time, or until something happens."""

    until: float


@attrs.define
class DispatchMachine:
    """The state of one queue, as one dispatcher knows it.

    Invariants: at most one claim is under way. It sleeps only if a claim that was made after its mark was
    committed came back not full, and nothing rang since: then every job that can run now was sent after
    senders could see the mark, and they will ring.
    """

    hungry: bool = True
    """There may be jobs that no claim of ours has looked for."""
    marked: bool = False
    """Senders know that we may be asleep."""
    due: float = -math.inf
    """When something waits to be made ready."""

    _asked: Ask | None = None
    _full_claims: int = 0
    _looks: float = _LOOKS
    _looked_at: float = -math.inf
    _failures: int = 0
    _not_before: float = -math.inf

    def ring(self, now: float, delay: float = 0.0) -> None:
        """Somebody says that there is a job, now or in so many seconds."""
        if delay > 0:
            self.due = min(self.due, now + delay)
        else:
            self.hungry = True

    def forget_mark(self) -> None:
        """The mark may be gone from the database: write it again before sleeping."""
        self.marked = False
        self.hungry = True

    def plan(self, now: float, room: int) -> Ask | Rest:
        """What to do now, with room for so many more jobs."""
        if self._asked is not None:
            return Rest(math.inf)
        ripe = now >= self.due
        if not (self.hungry or ripe):
            return Rest(self.due)
        if now < self._not_before:
            return Rest(self._not_before)
        if room <= 0:
            return Rest(math.inf)
        in_a_rush = self._full_claims >= _RUSH
        asleep = (not in_a_rush) if self.marked == in_a_rush else None
        self._asked = Ask(room, ripe, asleep)
        self.hungry = False
        return self._asked

    def claimed(self, count: int, next_due: float | None, now: float) -> None:
        """The claim came back with so many jobs; in ``next_due`` seconds there is something to make ready."""
        asked = self._finish()
        if asked.asleep is not None:
            self.marked = asked.asleep
        full = count >= asked.limit
        self._full_claims = self._full_claims + 1 if full else 0
        self._failures = 0
        # Not marked, it must not sleep: it asks once more, and marks itself first.
        self.hungry = self.hungry or full or not self.marked
        self.due = math.inf if next_due is None else now + next_due
        self._not_before = -math.inf if count else self._after_fruitless_look(now)

    def failed(self, now: float, chance: float) -> None:
        """The database did not answer. ``chance`` (0 to 1) spreads the attempts of many dispatchers."""
        self._finish()
        self.forget_mark()
        delay = min(_FIRST_DELAY * 2**self._failures, _LONGEST_DELAY)
        self._failures += 1
        self._not_before = now + delay * (0.5 + chance / 2)

    def _finish(self) -> Ask:
        assert self._asked is not None
        asked, self._asked = self._asked, None
        return asked

    def _after_fruitless_look(self, now: float) -> float:
        """When the next claim may be made: a few at once, then one each interval. Words can be forged."""
        earned = (now - self._looked_at) / _LOOK_INTERVAL
        self._looks = min(_LOOKS, self._looks + earned) - 1
        self._looked_at = now
        return now if self._looks >= 1 else now + _LOOK_INTERVAL
