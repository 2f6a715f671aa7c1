"""Queue options: defaults, checks, and changes."""

from datetime import UTC, datetime, timedelta

import attrs
import pytest

import trioboss
from trioboss import Policy, Queue, QueueStats
from trioboss.model.queue import QueueOptions, QueueSettings, changed_settings

DEFAULTS = {
    "policy": Policy.STANDARD,
    "partition": False,
    "dead_letter": None,
    "warning_queue_size": None,
    "retry_limit": 2,
    "retry_delay": 0.0,
    "retry_backoff": False,
    "retry_delay_max": None,
    "retry_jitter": 0.0,
    "retry_multiplier": 2.0,
    "retry_window": None,
    "expire_in": 900.0,
    "heartbeat": None,
    "auto_heartbeat": True,
    "max_lease_extensions": 3,
    "commit_order": True,
    "retention": 14 * 86400.0,
    "delete_after": 7 * 86400.0,
    "keep_completed": True,
}

BAD_OPTIONS = {
    "policy": "fifo",
    "partition": 1,
    "dead_letter": "a b",
    "warning_queue_size": 0,
    "retry_limit": None,
    "retry_delay": -1,
    "retry_backoff": None,
    "retry_delay_max": -1,
    "retry_jitter": 1.5,
    "retry_multiplier": 0.5,
    "retry_window": 0,
    "expire_in": 0,
    "heartbeat": 0.9,
    "auto_heartbeat": "no",
    "max_lease_extensions": -1,
    "commit_order": 0,
    "retention": 0,
    "delete_after": None,
    "keep_completed": "yes",
}


def test_the_defaults_are_those_of_the_contract():
    assert attrs.asdict(QueueSettings()) == DEFAULTS
    assert set(QueueOptions.__annotations__) == set(DEFAULTS) == set(BAD_OPTIONS)


@pytest.mark.parametrize(("option", "value"), BAD_OPTIONS.items())
def test_a_bad_option_is_refused_by_name(option, value):
    with pytest.raises(trioboss.UsageError, match=rf"^{option}: "):
        QueueSettings(**{option: value})


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(TypeError, match="'retries'"):
        QueueSettings(retries=3)


def test_half_of_a_backoff_is_random_unless_said_otherwise():
    assert QueueSettings(retry_backoff=True).retry_jitter == 0.5
    assert QueueSettings(retry_backoff=True, retry_jitter=0).retry_jitter == 0.0
    assert QueueSettings(retry_jitter=0.1).retry_jitter == 0.1


def test_durations_are_seconds_or_timedeltas():
    assert QueueSettings(expire_in=timedelta(hours=1)).expire_in == 3600.0


def test_only_given_options_are_changed():
    assert changed_settings({"retry_limit": 5, "dead_letter": None}) == {
        "retry_limit": 5,
        "dead_letter": None,
    }


def test_a_change_of_the_backoff_changes_the_jitter():
    assert changed_settings({"retry_backoff": True}) == {"retry_backoff": True, "retry_jitter": 0.5}
    assert changed_settings({"retry_backoff": True, "retry_jitter": 0.1})["retry_jitter"] == 0.1


@pytest.mark.parametrize("option", ["policy", "partition"])
def test_policy_and_partition_cannot_be_changed(option):
    with pytest.raises(trioboss.UsageError, match=rf"^{option}: cannot be changed .*create another queue"):
        changed_settings({option: DEFAULTS[option]})


def make_queue(**changes):
    now = datetime.now(UTC)
    own = {"name": "q", "table_name": "live_job_common", "revision": 1, "paused": False, "on_complete": False}
    return Queue(**{**DEFAULTS, **own, "created_on": now, "updated_on": now, **changes})


def test_a_queue_made_with_the_same_options_does_not_differ():
    assert make_queue().differences(QueueSettings()) == {}


def test_each_option_that_differs_is_named_with_both_values():
    differing = make_queue(policy="short", retry_limit=5).differences(QueueSettings(expire_in=1))

    assert differing == {
        "policy": (Policy.SHORT, Policy.STANDARD),
        "retry_limit": (5, 2),
        "expire_in": (900.0, 1.0),
    }


def test_pending_and_inflight_are_other_names_of_queued_and_active():
    stats = QueueStats(1, 9, 8, 4, 0, 0, 0, 0, 2, 1.5, False)

    assert (stats.pending, stats.inflight) == (stats.queued, stats.active) == (9, 4)
