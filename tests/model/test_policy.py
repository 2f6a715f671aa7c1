"""Policies and their older names."""

import pytest

import trioboss
from trioboss import Policy


@pytest.mark.parametrize("policy", list(Policy))
def test_a_policy_is_parsed_by_its_name(policy):
    assert Policy.parse(policy.value) is policy
    assert Policy.parse(policy) is policy


@pytest.mark.parametrize(
    ("older", "policy"),
    [("debounced", Policy.SHORT), ("singleton_strict_fifo", Policy.KEY_STRICT_FIFO)],
)
def test_older_names_are_accepted(older, policy):
    assert Policy.parse(older) is policy


@pytest.mark.parametrize("value", ["", "Standard", "fifo", None, 1, ["short"]])
def test_an_unknown_policy_is_refused_with_the_list_of_policies(value):
    with pytest.raises(trioboss.UsageError, match=r"^policy: .*standard, short.*key_strict_fifo"):
        Policy.parse(value)


def test_three_policies_are_keyed():
    keyed = {policy for policy in Policy if policy.is_keyed}

    assert keyed == {Policy.SINGLETON, Policy.STATELY, Policy.KEY_STRICT_FIFO}
