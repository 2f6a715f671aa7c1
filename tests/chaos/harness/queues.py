"""The queues of a run, and what the checker needs to know about each."""

from typing import Any

from tests.chaos.harness.history import QueueRules

__all__ = ["BATCHES", "CRON", "LEASE", "QUEUES", "RETRY_LIMIT", "SHARES", "rules_of"]

RETRY_LIMIT = 5
_HEARTBEAT = 1.0  # seconds, the minimum
LEASE = 3.5  # seconds until maintenance takes a job from a silent worker: heartbeat, margin and one round
_LONGEST_RETRY_DELAY = 1.0  # seconds

BATCHES = "batches"
"""Its jobs are handled by the batch. Not called chaos.…, so that the workers of all other queues leave it alone."""
CRON = "chaos.cron"
"""A schedule sends a job to it every second."""

_COMMON: dict[str, Any] = {
    "heartbeat": _HEARTBEAT,
    "expire_in": 6.0,
    "retry_limit": RETRY_LIMIT,
    "max_lease_extensions": 3,
}
_WITH_DEAD_LETTER = {**_COMMON, "dead_letter": "chaos.dead"}
_BACKOFF = {"retry_backoff": True, "retry_delay_max": _LONGEST_RETRY_DELAY}

QUEUES: dict[str, dict[str, Any]] = {
    "chaos.dead": _COMMON,
    "chaos.standard": _WITH_DEAD_LETTER,
    "chaos.own_table": {**_WITH_DEAD_LETTER, **_BACKOFF, "partition": True},
    "chaos.short": {**_WITH_DEAD_LETTER, "policy": "short"},
    "chaos.singleton": {**_WITH_DEAD_LETTER, "policy": "singleton"},
    "chaos.stately": {**_WITH_DEAD_LETTER, "policy": "stately"},
    "chaos.exclusive": {**_WITH_DEAD_LETTER, "policy": "exclusive"},
    "chaos.fifo": {**_COMMON, "policy": "key_strict_fifo"},
    CRON: _WITH_DEAD_LETTER,
    BATCHES: _WITH_DEAD_LETTER,
}
SHARES = {
    "chaos.standard": 9,
    "chaos.own_table": 4,
    "chaos.short": 2,
    "chaos.singleton": 3,
    "chaos.stately": 2,
    "chaos.exclusive": 2,
    "chaos.fifo": 4,
    BATCHES: 3,
}
"""How many of the jobs are sent to each queue, in proportion."""


def rules_of(queue: str) -> QueueRules:
    """Return what the checker needs to know about one of the queues."""
    options = QUEUES[queue]
    policy = options.get("policy", "standard")
    return QueueRules(
        one_at_a_time=policy in ("singleton", "stately", "exclusive", "key_strict_fifo"),
        in_order=policy == "key_strict_fifo",
        dead_letter=options.get("dead_letter"),
        one_retry=policy == "stately",
        one_created=policy in ("short", "stately"),
        one_alive=policy == "exclusive",
        by_priority=policy == "standard",
        retry_delay=options.get("retry_delay_max", 0.0),
    )
