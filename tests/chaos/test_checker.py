"""The checker of the chaos run accepts good histories, and finds the violation in each forged one."""

import pytest

from tests.chaos.forged_histories import FORGED, GOOD
from tests.chaos.harness.checker import check
from tests.chaos.harness.history import History


def violated(history: History) -> set[str]:
    return {name for name, lines in check(history).found.items() if lines}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
def test_a_good_history_passes(history):
    assert check(history).is_good, check(history)


@pytest.mark.parametrize(("kind", "history"), FORGED.values(), ids=FORGED)
def test_the_violation_in_a_forged_history_is_found(kind, history):
    assert kind in violated(history)


def test_every_check_fails_for_some_history():
    assert {kind for kind, _ in FORGED.values()} == set(check(History()).found)
