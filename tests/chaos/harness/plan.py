"""What happens in a run: queues of every policy, jobs of every length, faults of every kind, all from one seed."""

import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import attrs

from tests.chaos.harness.history import QueueRules

__all__ = ["LEASE", "PRESENCE_GRACE", "QUEUES", "QUICK", "RETRY_LIMIT", "Plan", "PlannedSend", "rules_of"]

PRESENCE_GRACE = 2.0  # seconds, the minimum
RETRY_LIMIT = 5
_HEARTBEAT = 1.0  # seconds, the minimum
LEASE = 3.5  # seconds until maintenance takes a job from a silent worker: heartbeat, margin and one round
# A stopped worker must resume while the next attempt of its job is running. Long jobs therefore take most of a lease,
# and stops last a little more than one.
_LONG = (0.6 * LEASE, 0.9 * LEASE)

_COMMON: dict[str, Any] = {
    "heartbeat": _HEARTBEAT,
    "expire_in": 6.0,
    "retry_limit": RETRY_LIMIT,
    "max_lease_extensions": 3,
}
_WITH_DEAD_LETTER = {**_COMMON, "dead_letter": "chaos.dead"}

QUEUES: dict[str, dict[str, Any]] = {
    "chaos.dead": _COMMON,
    "chaos.standard": _WITH_DEAD_LETTER,
    "chaos.own_table": {**_WITH_DEAD_LETTER, "partition": True, "retry_backoff": True, "retry_delay_max": 1},
    "chaos.short": {**_WITH_DEAD_LETTER, "policy": "short"},
    "chaos.singleton": {**_WITH_DEAD_LETTER, "policy": "singleton"},
    "chaos.stately": {**_WITH_DEAD_LETTER, "policy": "stately"},
    "chaos.exclusive": {**_WITH_DEAD_LETTER, "policy": "exclusive"},
    "chaos.fifo": {**_COMMON, "policy": "key_strict_fifo"},
}
_SHARES = {
    "chaos.standard": 9,
    "chaos.own_table": 4,
    "chaos.short": 2,
    "chaos.singleton": 3,
    "chaos.stately": 2,
    "chaos.exclusive": 2,
    "chaos.fifo": 4,
}

# Besides kill, stop and restart. Each is a method of the nemesis.
_OTHER_FAULTS = ("listener", "backends", "delay", "silence", "half_close", "cut_reply", "lock", "snapshot")


def rules_of(queue: str) -> QueueRules:
    """Return what the checker needs to know about one of the queues."""
    options = QUEUES[queue]
    policy = options.get("policy", "standard")
    return QueueRules(
        one_at_a_time=policy in ("singleton", "stately", "exclusive", "key_strict_fifo"),
        in_order=policy == "key_strict_fifo",
        dead_letter=options.get("dead_letter"),
        may_fail_early=policy == "stately",
    )


@attrs.frozen
class PlannedSend:
    """One job for a producer to send."""

    id: UUID
    queue: str
    key: str | None
    data: dict[str, Any]
    mode: str
    """plain, transaction, rollback, or forget: do not send again if no answer arrives."""
    pause: float
    """Seconds between the send and the commit of its transaction."""
    options: dict[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Plan:
    """The size of a run."""

    seed: int = 1
    jobs: int = 10_000
    kills: int = 200
    restarts: int = 20
    stops: int = 100
    others: int = 20
    """How often each other fault happens."""
    seconds: float = 300.0
    """The time over which sends and faults are spread."""
    workers: int = 4
    manual_workers: int = 2
    producers: int = 3
    keys: int = 12
    poison: int = 2
    """Jobs that kill the worker that runs them."""

    def sends(self, producer: int) -> Iterator[PlannedSend]:
        """Yield what one producer sends."""
        rng = random.Random(f"{self.seed}/{producer}")
        for number in range(producer, self.jobs, self.producers):
            yield self._send(rng, number)

    def _send(self, rng: random.Random, number: int) -> PlannedSend:
        (queue,) = rng.choices(tuple(_SHARES), tuple(_SHARES.values()))
        fifo = queue == "chaos.fifo"
        key = f"k{rng.randrange(self.keys)}" if fifo or rng.random() < 0.8 else None
        data = self._work(rng)
        if number < self.poison:
            return PlannedSend(
                _new_id(rng), "chaos.standard", None, _POISON, "plain", 0.0, {"retry_limit": 1}
            )
        # The ledger proves the order of commits, so strict FIFO jobs are always sent in a transaction.
        mode = rng.choice(("transaction",) * 9 + ("rollback",) if fifo else _MODES)
        return PlannedSend(_new_id(rng), queue, key, data, mode, rng.choice((0.0, 0.0, 0.02, 0.1)))

    @staticmethod
    def _work(rng: random.Random) -> dict[str, Any]:
        (then,) = rng.choices(("complete", "fail_once", "fail"), (80, 19, 1))
        long = rng.random() < 0.15 and then != "fail"  # a job that always fails runs RETRY_LIMIT + 1 times
        return {
            "seconds": rng.uniform(*_LONG) if long else rng.uniform(0, 0.02),
            "how": rng.choice(("sleep", "sleep", "sleep", "shielded")),
            "then": then,
        }

    def faults(self) -> list[str]:
        """Return the kinds of the faults, in their order."""
        kinds = ["kill"] * self.kills + ["stop"] * self.stops + ["restart"] * self.restarts
        kinds += [kind for kind in _OTHER_FAULTS for _ in range(self.others)]
        random.Random(f"{self.seed}/faults").shuffle(kinds)
        return kinds


QUICK = Plan(jobs=450, kills=20, stops=8, restarts=2, others=2, seconds=16.0, poison=1)


def _new_id(rng: random.Random) -> UUID:
    return UUID(int=rng.getrandbits(128), version=4)


_POISON = {"seconds": 0.0, "then": "die"}
_MODES = ("plain",) * 6 + ("transaction",) * 2 + ("rollback", "forget")
