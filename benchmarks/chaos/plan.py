"""What is to happen: queues of every policy, jobs of every length, faults of every kind. A seed decides it all."""

import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import attrs

from benchmarks.chaos.history import QueueRules

__all__ = [
    "LEASE",
    "LONG",
    "OTHER_FAULTS",
    "PRESENCE_GRACE",
    "QUEUES",
    "RETRY_LIMIT",
    "Order",
    "Plan",
    "rules_of",
]

PRESENCE_GRACE = 2.0  # seconds, the least there is
RETRY_LIMIT = 5
_HEARTBEAT = 1.0  # seconds, the least there is
LEASE = 3.5  # seconds until maintenance has taken a job from a silent worker: heartbeat, margin, and a round
# A zombie has to wake while its successor is still at work: jobs of four fifths of a lease, stopped for a little more
# than one.
LONG = (0.6 * LEASE, 0.9 * LEASE)

_COMMON: dict[str, Any] = {
    "heartbeat": _HEARTBEAT,
    "expire_in": 6.0,
    "retry_limit": RETRY_LIMIT,
    "max_lease_extensions": 3,
}
_MORTAL = {**_COMMON, "dead_letter": "chaos.dead"}

QUEUES: dict[str, dict[str, Any]] = {
    "chaos.dead": _COMMON,
    "chaos.standard": _MORTAL,
    "chaos.own_table": {**_MORTAL, "partition": True, "retry_backoff": True, "retry_delay_max": 1},
    "chaos.short": {**_MORTAL, "policy": "short"},
    "chaos.singleton": {**_MORTAL, "policy": "singleton"},
    "chaos.stately": {**_MORTAL, "policy": "stately"},
    "chaos.exclusive": {**_MORTAL, "policy": "exclusive"},
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

# Besides kills, stops and restarts.
OTHER_FAULTS = (
    "listener",
    "backends",
    "delay",
    "hole",
    "half_close",
    "cut_reply",
    "lock",
    "snapshot",
)


def rules_of(queue: str) -> QueueRules:
    """What the checker must know of one of our queues."""
    options = QUEUES[queue]
    policy = options.get("policy", "standard")
    return QueueRules(
        one_at_a_time=policy in ("singleton", "stately", "exclusive", "key_strict_fifo"),
        in_order=policy == "key_strict_fifo",
        dead_letter=options.get("dead_letter"),
        may_fail_early=policy == "stately",
    )


@attrs.frozen
class Order:
    """One job for a producer to send."""

    id: UUID
    queue: str
    key: str | None
    data: dict[str, Any]
    way: str
    """plain, transaction, rollback, or forget: do not ask again if no answer came."""
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
    """Over how long sends and faults are spread."""
    workers: int = 4
    by_hand: int = 2
    producers: int = 3
    keys: int = 12
    poison: int = 2
    """Jobs that kill whoever runs them."""

    def orders(self, producer: int) -> Iterator[Order]:
        """What one producer sends."""
        chance = random.Random(f"{self.seed}/{producer}")
        for number in range(producer, self.jobs, self.producers):
            yield self._order(chance, number)

    def _order(self, chance: random.Random, number: int) -> Order:
        (queue,) = chance.choices(tuple(_SHARES), tuple(_SHARES.values()))
        fifo = queue == "chaos.fifo"
        key = f"k{chance.randrange(self.keys)}" if fifo or chance.random() < 0.8 else None
        data = self._work(chance)
        if number < self.poison:
            return Order(_new_id(chance), "chaos.standard", None, _POISON, "plain", 0.0, {"retry_limit": 1})
        way = chance.choice(("transaction",) * 9 + ("rollback",) if fifo else _WAYS)
        return Order(_new_id(chance), queue, key, data, way, chance.choice((0.0, 0.0, 0.02, 0.1)))

    @staticmethod
    def _work(chance: random.Random) -> dict[str, Any]:
        (then,) = chance.choices(("complete", "fail_once", "fail"), (80, 19, 1))
        long = chance.random() < 0.15 and then != "fail"  # it would be run so often
        return {
            "seconds": chance.uniform(*LONG) if long else chance.uniform(0, 0.02),
            "how": chance.choice(("sleep", "sleep", "sleep", "shielded")),
            "then": then,
        }

    def faults(self) -> list[str]:
        """The kinds of the faults, in their order."""
        kinds = ["kill"] * self.kills + ["stop"] * self.stops + ["restart"] * self.restarts
        kinds += [kind for kind in OTHER_FAULTS for _ in range(self.others)]
        random.Random(f"{self.seed}/faults").shuffle(kinds)
        return kinds


def _new_id(chance: random.Random) -> UUID:
    return UUID(int=chance.getrandbits(128), version=4)


_POISON = {"seconds": 0.0, "then": "die"}
_WAYS = ("plain",) * 6 + ("transaction",) * 2 + ("rollback", "forget")
