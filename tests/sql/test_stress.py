"""Sixteen dispatchers on one keyed queue, senders and changers with open transactions, and plain SQL writers.

The normal run takes a few seconds for each policy; `pytest -m soak tests/sql/test_stress.py` takes minutes. Breaks that
it has to notice are in tests/mutants/mutants.toml.
"""

import time

import pytest
from concurrency_actors import Changer, Dispatcher, PlainWriter, Sender
from concurrency_checks import Monitor, check
from concurrency_helpers import Arena, Rescuer

pytestmark = pytest.mark.xdist_group("stress")  # two at once would only slow each other down

FIFO = {"policy": "key_strict_fifo", "dead_policy": "key_strict_fifo"}
SINGLETON = {"policy": "singleton", "dead_policy": "singleton"}
STATELY = {"policy": "stately", "dead_policy": "standard"}
POLICIES = {"strict FIFO": FIFO, "singleton with priorities": SINGLETON, "stately": STATELY}

KEYS = [f"key{number}" for number in range(12)]


def run(dsn, name, seconds, seed):
    options = POLICIES[name]
    arena = Arena(dsn, seed, keys=KEYS if options is FIFO else [*KEYS, None])
    arena.prepare(**options, retry_limit=2)
    until = time.monotonic() + seconds
    arena.run(
        {f"sender {n}": Sender(arena, until=until) for n in range(4)}
        | {f"changer {n}": Changer(arena, until=until) for n in range(2)}
        | {f"writer {n}": PlainWriter(arena, until) for n in range(2)},
        {f"dispatcher {n}": Dispatcher(arena) for n in range(16)}
        | {"rescuer": Rescuer(arena), "monitor": Monitor(arena)},
    )
    assert arena.counts["sent"] > 20
    assert arena.counts["claimed"] > 20
    assert arena.counts["checked"] > 2
    check(arena, policy=options["policy"], plain_sql=True)
    print(sorted(arena.counts.items()))


@pytest.mark.parametrize("name", POLICIES)
def test_a_keyed_queue_holds_under_stress(dsn, name):
    run(dsn, name, 3.0, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", POLICIES)
def test_a_keyed_queue_holds_under_long_stress(dsn, name, seed):
    run(dsn, name, 60.0, seed)
