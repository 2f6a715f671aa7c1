"""Many threads on one queue, on real connections: order, keys and limits hold, nothing is lost, nothing is stuck.

Every policy, for a certain number of steps. test_stress.py has more threads, and runs for as long as it is told to.
"""

import pytest
from concurrency_actors import Changer, Dispatcher, Sender
from concurrency_checks import Monitor, check
from concurrency_helpers import Arena, Rescuer

POLICIES = {
    "strict FIFO": {"policy": "key_strict_fifo"},
    "FIFO without commit order": {"policy": "key_strict_fifo", "commit_order": False},
    "singleton": {"policy": "singleton"},
    "stately": {"policy": "stately"},
    "short": {"policy": "short"},
    "exclusive": {"policy": "exclusive"},
    "standard": {"policy": "standard"},
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_holds_under_load(dsn, name):
    options = POLICIES[name]
    arena = Arena(dsn, seed=1)
    arena.prepare(**options, retry_limit=2)

    arena.run(
        {f"sender {n}": Sender(arena, rounds=40) for n in range(3)}
        | {f"changer {n}": Changer(arena, rounds=40) for n in range(2)},
        {f"dispatcher {n}": Dispatcher(arena) for n in range(4)}
        | {"rescuer": Rescuer(arena), "monitor": Monitor(arena)},
    )

    assert arena.counts["sent"] > 30
    assert arena.counts["claimed"] > 20
    assert arena.counts["checked"] > 2
    check(arena, policy=options["policy"], by_commit=options.get("commit_order", True))
