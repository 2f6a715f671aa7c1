"""The plan of a run: jobs of every policy, length and size, faults of every kind, all from one seed."""

import random
import zlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import attrs

from tests.chaos.harness.queues import LEASE, RETRY_LIMIT, SHARES

__all__ = ["GRACE", "PRESENCE_GRACE", "QUICK", "Plan", "PlannedSend", "checksum", "must_fail", "soak"]

PRESENCE_GRACE = 2.0  # seconds, the minimum
GRACE = 2.0  # seconds that the handlers of a worker have after SIGTERM
# A stopped worker must resume while the next attempt of its job is running. Long jobs therefore take most of a lease,
# and stops last a little more than one.
_LONG = (0.6 * LEASE, 0.9 * LEASE)
_SLOT = 5.0  # seconds of a throttle slot
_DEFERRED = (0.5, 4.0)  # seconds
_PRIORITIES = (0, 0, 0, 0, 1, 5, -3)
_SIZES = (0, 0, 0, 0, 100, 2_000, 20_000)  # bytes of most payloads and outputs
_LARGE = (200_000, 1_000_000, 4_000_000)  # of few
# Methods besides send: one job of a key, or one in a slot.
_METHODS = ("send",) * 17 + ("send_once", "send_singleton", "send_throttled")

# Besides kill, term, stop and restart. Each is a method of the nemesis.
_OTHER_FAULTS = (
    *("listener", "backends", "delay", "silence", "half_close", "cut_reply", "lock", "snapshot"),
    *("strange_rows", "notify_full", "disk_full"),
)


@attrs.frozen
class PlannedSend:
    """One job for a producer to send."""

    id: UUID
    queue: str
    key: str | None
    data: dict[str, Any]
    mode: str
    """plain, transaction, repeatable (a transaction at REPEATABLE READ), rollback, or forget: do not send again if no
    answer arrives.
    """
    pause: float
    """Seconds between the send and the commit of its transaction; or, for a change, between send and cancel."""
    options: dict[str, Any] = attrs.field(factory=dict)
    method: str = "send"
    """send, send_once, send_singleton or send_throttled."""
    slot: float | None = None
    """Of send_throttled: the length of a slot in seconds."""
    changes: tuple[str, ...] = ()
    """The action of the producer on the job afterwards: cancel, and perhaps resume."""


@attrs.frozen(kw_only=True)
class Plan:
    """The size of a run."""

    seed: int = 1
    jobs: int = 10_000
    kills: int = 200
    terms: int = 40
    restarts: int = 20
    stops: int = 100
    others: int = 20
    """How often each other fault happens."""
    seconds: float = 300.0
    """The time over which sends and faults are spread."""
    rest: float = 0.0
    """Seconds without a new fault at the end of each minute, so that times are judged all along a long run."""
    calm: int = 5
    """Faults at the end, each alone, so that times and reasons can be judged sharply."""
    workers: int = 4
    steady: int = 0
    """So many of the workers are never killed or stopped: their memory is measured."""
    manual_workers: int = 2
    producers: int = 3
    hot_keys: int = 12
    keys: int = 5_000
    """Half of the keyed jobs have one of the hot keys, the others one of these."""
    poison: int = 2
    """Jobs that kill the worker that runs them."""
    long: float = 0.15
    """The share of jobs that take most of a lease."""
    other: str | None = None
    """A revision of git: every second process that is started imports its trioboss instead."""
    disk: int = 1
    """The data is on a disk of so many gigabytes, if one can be mounted, which the fault disk_full fills; 0: not."""
    failover: bool = False
    """The last fault: the server is lost, and its standby promoted."""
    large: float = 0.01
    """The share of jobs with a payload or an output of up to several megabytes."""

    def sends(self, producer: int) -> Iterator[PlannedSend]:
        """Yield what one producer sends."""
        rng = random.Random(f"{self.seed}/{producer}")
        for number in range(producer, self.jobs, self.producers):
            yield self._poison(rng) if number < self.poison else self._send(rng)

    @staticmethod
    def _poison(rng: random.Random) -> PlannedSend:
        data = {"seconds": 0.0, "then": "die"}
        return PlannedSend(_new_id(rng), "chaos.standard", None, data, "plain", 0.0, {"retry_limit": 1})

    def _send(self, rng: random.Random) -> PlannedSend:
        (queue,) = rng.choices(tuple(SHARES), tuple(SHARES.values()))
        fifo = queue == "chaos.fifo"
        method = "send" if fifo else rng.choice(_METHODS)
        key = self._key(rng) if fifo or method != "send" or rng.random() < 0.8 else None
        # The ledger proves the order of commits, so strict FIFO jobs are always sent in a transaction.
        mode = rng.choice(_FIFO_MODES if fifo else _MODES)
        changes = _CHANGES[0] if fifo or mode != "plain" else rng.choice(_CHANGES)
        return PlannedSend(
            _new_id(rng),
            queue,
            key,
            self._data(rng),
            mode,
            rng.choice((0.0, 0.0, 0.02, 0.1)),
            self._options(rng, fifo=fifo),
            method,
            _SLOT if method == "send_throttled" else None,
            changes,
        )

    def _key(self, rng: random.Random) -> str:
        return f"k{rng.randrange(self.hot_keys if rng.random() < 0.5 else self.keys)}"

    @staticmethod
    def _options(rng: random.Random, *, fifo: bool) -> dict[str, Any]:
        """A deferred job of strict FIFO does not hold its key, so its position is not that of its commit."""
        options: dict[str, Any] = {}
        if (priority := rng.choice(_PRIORITIES)) and not fifo:
            options["priority"] = priority
        if rng.random() < 0.05 and not fifo:
            options["start_after"] = rng.uniform(*_DEFERRED)
        return options

    def _data(self, rng: random.Random) -> dict[str, Any]:
        (then,) = rng.choices(("complete", "fail_once", "fail"), (80, 19, 1))
        long = (
            rng.random() < self.long and then != "fail"
        )  # a job that always fails runs RETRY_LIMIT + 1 times
        sizes = [rng.choice(_LARGE if rng.random() < self.large / 2 else _SIZES) for _ in range(2)]
        return {
            "seconds": rng.uniform(*_LONG) if long else rng.uniform(0, 0.02),
            "how": rng.choice(("sleep", "sleep", "sleep", "shielded")),
            "then": then,
            "fill": f"{rng.random()} " * (sizes[0] // 20),
            "output": sizes[1],
        }

    def fault_times(self) -> list[float]:
        """Return when each of the faults begins, in seconds: spread over the minutes, without their rests."""
        number, busy = len(self.faults()), 60.0 - self.rest
        minutes = self.seconds / 60.0
        times = (divmod(minutes * place / number, 1.0) for place in range(number))
        return [60.0 * minute + busy * share for minute, share in times]

    def faults(self) -> list[str]:
        """Return the kinds of the faults, in their order."""
        kinds = ["kill"] * self.kills + ["stop"] * self.stops + ["restart"] * self.restarts
        kinds += ["term"] * self.terms
        kinds += [kind for kind in _OTHER_FAULTS for _ in range(self.others)]
        random.Random(f"{self.seed}/faults").shuffle(kinds)
        return [*kinds, "failover"] if self.failover else kinds


QUICK = Plan(
    jobs=360,
    kills=20,
    terms=2,
    stops=6,
    restarts=2,
    others=1,
    seconds=12.0,
    poison=1,
    calm=0,
    long=0.1,
    disk=0,
)


def soak(seconds: float, jobs_per_second: float = 300.0) -> Plan:
    """Return the plan of a long run under steady load, with faults in the first part of each minute."""

    def every(interval: float) -> int:
        return max(1, int(seconds / interval))

    jobs = int(seconds * jobs_per_second)
    return Plan(
        jobs=jobs,
        seconds=seconds,
        kills=every(60),
        terms=every(120),
        stops=every(120),
        restarts=every(600),
        others=every(300),
        producers=12,
        steady=1,
        rest=35.0,
        long=0.02,
        large=0.001,
        disk=2 + jobs // 500_000,
    )


_MODES = ("plain",) * 6 + ("transaction", "repeatable", "rollback", "forget")
_FIFO_MODES = ("transaction",) * 7 + ("repeatable",) * 2 + ("rollback",)
_CHANGES: tuple[tuple[str, ...], ...] = ((),) * 28 + (("cancel",), ("cancel", "resume"))


def _new_id(rng: random.Random) -> UUID:
    return UUID(int=rng.getrandbits(128), version=4)


def checksum(data: Any) -> int:
    """Return the checksum of the part of a job's data that has no meaning."""
    return zlib.crc32(data.get("fill", "").encode()) if data else 0


def must_fail(job: Any) -> bool:
    """Whether this attempt fails. A job that was retried by an operator succeeds, and so does a dead letter job."""
    fails = {"fail": RETRY_LIMIT, "fail_once": 0}.get(job.data["then"], -1)
    return job.source_id is None and job.retry_count <= fails
