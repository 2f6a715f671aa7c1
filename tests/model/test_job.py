"""Jobs as they are sent and as they are read, and their ids."""

import time
import uuid
from datetime import UTC, datetime, timedelta
from itertools import islice

import attrs
import pytest

import trioboss
from trioboss import Job, JobState, NewJob
from trioboss.model.ids import make_id, make_ids
from trioboss.model.job import Lease, SendOptions

ID = uuid.UUID("01890a5d-ac96-774b-bcce-b302099a8057")
INSTANT = datetime(2030, 1, 1, tzinfo=UTC)


def test_an_id_is_a_uuid_of_version_7_made_now():
    before = time.time_ns() // 1_000_000
    id = make_id()
    after = time.time_ns() // 1_000_000

    assert id.version == 7
    assert id.variant == uuid.RFC_4122
    assert before <= id.int >> 80 <= after


def test_ids_of_later_instants_are_greater(monkeypatch):
    instants = [1_000_000, 1_000_250, 2_000_000, 10**18, 10**18 + 250, 10**18 + 999_999, 10**18 + 1_000_000]
    remaining = iter(instants)
    monkeypatch.setattr(time, "time_ns", lambda: next(remaining))

    ids = [make_id() for _ in instants]

    assert ids == sorted(ids)
    assert [str(id) for id in ids] == sorted(str(id) for id in ids)


def test_ids_made_one_after_the_other_are_in_order():
    ids = [make_id() for _ in range(1000)]

    assert ids == sorted(ids)


def test_ids_do_not_repeat():
    assert len({make_id() for _ in range(10_000)}) == 10_000


def test_the_ids_of_a_bulk_load_are_made_like_those_of_single_jobs():
    before = make_id()
    ids = [uuid.UUID(bytes=id) for id in islice(make_ids(), 10_000)]

    assert {(id.version, id.variant) for id in ids} == {(7, uuid.RFC_4122)}
    assert len(set(ids)) == len(ids)
    assert before < min(ids)
    assert max(ids) < make_id()


@pytest.mark.parametrize(
    ("option", "given", "kept"),
    [
        ("id", str(ID), ID),
        ("priority", -5, -5),
        ("start_after", timedelta(minutes=1), 60.0),
        ("start_after", "2030-01-01T00:00:00Z", INSTANT),
        ("singleton_key", "a b", "a b"),
        ("singleton_seconds", timedelta(hours=1), 3600.0),
        ("dead_letter", "dead", "dead"),
        ("retry_limit", 0, 0),
        ("retry_delay", 2, 2.0),
        ("retry_backoff", True, True),
        ("retry_delay_max", 30, 30.0),
        ("retry_jitter", 1, 1.0),
        ("retry_multiplier", 3, 3.0),
        ("retry_window", timedelta(days=1), 86400.0),
        ("expire_in", 0.5, 0.5),
        ("heartbeat", 1, 1.0),
        ("auto_heartbeat", False, False),
        ("max_lease_extensions", 7, 7),
        ("retention", timedelta(days=2), 172800.0),
        ("delete_after", 0, 0.0),
    ],
)
def test_an_option_is_kept_in_its_final_form(option, given, kept):
    value = getattr(NewJob(**{option: given}), option)

    assert value == kept
    assert type(value) is type(kept)


BAD_OPTIONS = {
    "id": "x",
    "priority": 1.5,
    "start_after": -1,
    "singleton_key": "",
    "singleton_seconds": 0,
    "singleton_next_slot": "yes",
    "dead_letter": "a b",
    "retry_limit": -1,
    "retry_delay": -1,
    "retry_backoff": 1,
    "retry_delay_max": -1,
    "retry_jitter": 2,
    "retry_multiplier": 101,
    "retry_window": 0,
    "expire_in": 0,
    "heartbeat": 0.5,
    "auto_heartbeat": None.__class__,
    "max_lease_extensions": -1,
    "retention": 0,
    "delete_after": -1,
    "trace": {"traceparent": 5},
}


@pytest.mark.parametrize(("option", "value"), BAD_OPTIONS.items())
def test_a_bad_option_is_refused_by_name(option, value):
    with pytest.raises(trioboss.UsageError, match=rf"^{option}: "):
        NewJob(**{option: value})


def test_every_option_of_send_is_an_option_of_a_new_job_and_is_tested_here():
    options = {field.name for field in attrs.fields(NewJob)} - {"data"}

    assert options == set(SendOptions.__annotations__) == set(BAD_OPTIONS)


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(TypeError, match="'retries'"):
        NewJob(retries=3)


def test_an_option_that_is_left_out_is_none():
    job = NewJob({"a": 1})

    assert {value for name, value in attrs.asdict(job).items() if name != "data"} == {None}


def test_singleton_next_slot_requires_singleton_seconds():
    with pytest.raises(trioboss.UsageError, match=r"^singleton_next_slot: .*singleton_seconds"):
        NewJob(singleton_next_slot=True)


def test_a_new_job_cannot_be_changed():
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        NewJob().priority = 5


def read_job(**changes):
    values = dict.fromkeys((field.name for field in attrs.fields(Job)), None)
    return Job(
        **{**values, "id": ID, "state": JobState.ACTIVE, "attempt": 3, "started_on": INSTANT, **changes}
    )


def test_an_active_job_has_the_lease_of_its_attempt():
    assert read_job().lease == Lease(ID, 3, INSTANT)


@pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.ACTIVE])
def test_a_job_that_is_not_active_has_no_lease(state):
    assert read_job(state=state).lease is None


def test_the_fields_of_the_contract_are_there():
    promised = (
        "id queue data state priority attempt retry_count retry_limit singleton_key created_on start_after "
        "started_on completed_on expire_in heartbeat output dead_letter source_queue source_id"
    )

    assert set(promised.split()) <= {field.name for field in attrs.fields(Job)}


def test_a_job_can_be_a_member_of_a_set_whatever_its_data():
    values = {field.name: None for field in attrs.fields(Job)} | {
        "id": make_id(),
        "data": {"a": []},
        "state": "created",
    }

    assert len({Job(**values), Job(**values)}) == 1
