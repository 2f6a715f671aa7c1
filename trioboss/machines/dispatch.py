"""When does a dispatcher ask for jobs, for how many, and when may it sleep?"""

import math

import attrs

__all__ = ["Ask", "DispatchMachine", "Rest"]

_SATURATED = 2  # full claims in a row after which senders need not wake us
_FREE_CLAIMS = 10  # fruitless claims without waiting; every job that is claimed allows for one more
_CLAIM_INTERVAL = 0.005  # seconds between fruitless claims after that
_DUE_INTERVAL = 0.01  # seconds between looks for what is due, while senders do not ring
_SETTLE_DELAY = (
    0.005  # seconds that an outcome waits for a claim to go with: each round trip is worth many jobs
)
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 10.0  # seconds between claims while the database fails


@attrs.frozen
class Ask:
    """Claim so many jobs; ``promote_due`` first those whose time has come. ``idle``: the mark, if it changes.
    ``find_next_due``: when is the next one due?
    """

    limit: int
    promote_due: bool
    idle: bool | None
    find_next_due: bool


@attrs.frozen
class Rest:
    """Do nothing until this time, or until something happens. ``for_room``: there is a job, but no room for it."""

    until: float
    for_room: bool = False


@attrs.define
class DispatchMachine:
    """The state of one queue, as one dispatcher knows it.

    Invariants: at most one claim is under way. It sleeps only if a claim that was made after its mark was
    committed came back not full, and nothing rang since: then every job that can run now was sent after
    senders could see the mark, and they will ring. It is not asked what is due as long as every change to that was
    heard: since the last look the mark was there, and all that rang said when their job is due. Without the mark it
    looks each few milliseconds.
    """

    may_have_jobs: bool = True
    """There may be jobs that no claim of ours has looked for."""
    due_unknown: bool = True
    """Something may have become due earlier than we know."""
    marked: bool = False
    """Senders know that we may be idle."""
    due: float = -math.inf
    """When something waits to be made ready, of what we know besides the claim under way."""
    retry_at: float = -math.inf
    """When to turn to the database again, after it has failed."""
    fenced: bool = False
    """Others may take what we lease: lease nothing."""

    awaits_bulk_poll: bool = False
    """Somebody else marks us and looks for us; what rings until then is our own to see to."""

    _asked: Ask | None = None
    _full_claims: int = 0
    _free_claims: float = _FREE_CLAIMS
    _fruitless_at: float = -math.inf
    _failures: int = 0
    _answered_at: float = -math.inf
    _not_before: float = -math.inf
    _find_due_at: float = -math.inf

    @property
    def is_claiming(self) -> bool:
        """A claim is under way."""
        return self._asked is not None

    def ring(self, now: float, delay: float | None = None) -> None:
        """Somebody says that there is a job in so many seconds, with 0 a ready one; or that anything may be new."""
        if delay is not None and delay > 0:
            self.due = min(self.due, now + delay)
        else:
            self.may_have_jobs = True
            self.due_unknown = self.due_unknown or delay is None

    def forget_marker(self) -> None:
        """The mark may be gone from the database: write it again before sleeping."""
        self.marked = self.awaits_bulk_poll = False
        self.may_have_jobs = self.due_unknown = True
        if self._asked is not None:
            self._asked = attrs.evolve(self._asked, idle=None)  # nor does the one count that is on its way

    def fence(self) -> None:
        """Nobody sees any more that we are alive: ask for nothing until they do."""
        self.fenced = True

    def unfence(self) -> None:
        """We are seen and heard again; what was said in the meantime is lost."""
        self.fenced = False
        self.forget_marker()

    def await_bulk_poll(self) -> None:
        """We will be marked, and looked for, together with many others."""
        self.unfence()
        if self._asked is None:
            self.awaits_bulk_poll = True
            self.may_have_jobs = False
            self.due = math.inf

    def bulk_polled(self, now: float, next_due: float | None) -> None:
        """We were marked, and in so many seconds after that there was something to claim. Who asked in the meantime
        knows better: its own mark may be gone again.
        """
        if self.awaits_bulk_poll:
            self.awaits_bulk_poll = False
            self.marked = True
            if next_due is not None:
                self.ring(now, next_due or None)

    def plan(self, now: float, room: int) -> Ask | Rest:
        """What to do now, with room for so many more jobs."""
        if self._asked is not None or self.fenced:
            return Rest(math.inf)
        ripe = now >= self.due
        if not (self.may_have_jobs or ripe):
            return Rest(self.due)
        if now < (not_before := max(self._not_before, self.retry_at)):
            return Rest(not_before)
        if room <= 0:
            return Rest(math.inf, for_room=True)
        saturated = self._full_claims >= _SATURATED
        idle = (not saturated) if self.marked == saturated else None
        unheard = not self.marked and now >= self._find_due_at
        self._asked = Ask(
            room, ripe, idle, find_next_due=self.due_unknown or ripe or idle is not None or unheard
        )
        self.awaits_bulk_poll = False
        self.may_have_jobs = False
        if self._asked.find_next_due:
            # The answer will say what is due. What is rung until then may be newer than what the claim has seen.
            self.due_unknown = False
            self.due = math.inf
            self._find_due_at = now + _DUE_INTERVAL
        return self._asked

    def claimed(self, count: int, next_due: float | None, now: float) -> None:
        """The claim came back with so many jobs; in ``next_due`` seconds there is something to make ready."""
        assert self._asked is not None
        asked, self._asked = self._asked, None
        self.answered(now)
        if asked.idle is not None:
            self.marked = asked.idle
        full = count >= asked.limit
        self._full_claims = self._full_claims + 1 if full else 0
        # Not marked, it must not sleep: it asks once more, and marks itself first.
        self.may_have_jobs = self.may_have_jobs or full or not self.marked
        if next_due is not None:
            self.due = min(self.due, now + next_due)
        self._free_claims = min(_FREE_CLAIMS, self._free_claims + count)
        self._not_before = -math.inf if count else self._after_fruitless_claim(now)

    def answered(self, now: float) -> None:
        """The database works."""
        self._failures = 0
        self.retry_at = -math.inf
        self._answered_at = now

    def settles_at(self, rest: Rest, ended_at: float) -> float:
        """When to settle, without a claim, what ended at that time: now, or after a claim that lacks only room had
        its chance to take it along.
        """
        if not rest.for_room:
            return self.retry_at
        return max(self.retry_at, max(ended_at, self._answered_at) + _SETTLE_DELAY)

    def failed(self, now: float, chance: float) -> None:
        """The database did not answer. ``chance`` (0 to 1) spreads the attempts of many dispatchers."""
        self._asked = None
        self.forget_marker()
        self.due = -math.inf
        delay: float = min(_FIRST_DELAY * 2.0 ** min(self._failures, 10), _LONGEST_DELAY)
        self._failures += 1
        self.retry_at = now + delay * (0.5 + chance / 2)

    def _after_fruitless_claim(self, now: float) -> float:
        """When the next claim may be made: a few at once, then one each interval. Words can be forged; but they may as
        well be for jobs that another worker was quicker to take, or that our last claim had brought already.
        """
        earned = (now - self._fruitless_at) / _CLAIM_INTERVAL
        self._free_claims = min(_FREE_CLAIMS, self._free_claims + earned) - 1
        self._fruitless_at = now
        return now if self._free_claims >= 1 else now + _CLAIM_INTERVAL
