"""The errors: their messages name the cause and the remedy."""

import json
import traceback
import uuid
from pathlib import Path

import pytest

import trioboss
from trioboss import errors
from trioboss.model.described_error import describe_error, described_line, error_line

ID = uuid.UUID("01890a5d-ac96-774b-bcce-b302099a8057")


def test_every_error_is_exported_and_documented():
    for name in errors.__all__:
        assert getattr(trioboss, name) is getattr(errors, name)
        assert getattr(errors, name).__doc__


def test_every_error_is_a_trioboss_error_and_in_the_overview():
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), trioboss.TriobossError)
        assert name in errors.__doc__


def test_the_root_cannot_be_raised():
    with pytest.raises(TypeError, match="abstract"):
        trioboss.TriobossError("something went wrong")


def test_a_mistake_of_the_caller_is_a_value_error_too():
    for error in (trioboss.UnknownQueue, trioboss.QueueExists, trioboss.QueueInUse, trioboss.PayloadError):
        assert issubclass(error, trioboss.UsageError)
        assert issubclass(error, ValueError)


def test_errors_that_may_go_away_by_themselves_share_a_base():
    assert issubclass(trioboss.PoolTimeout, trioboss.DatabaseUnavailable)
    assert issubclass(trioboss.OutcomeUnknown, trioboss.DatabaseUnavailable)


@pytest.mark.parametrize(
    ("error", "parts"),
    [
        (trioboss.UnknownQueue("email"), ["'email'", "does not exist", "create_queue('email')"]),
        (
            trioboss.QueueExists("email", {"retry_limit": (2, 5)}),
            ["'email'", "retry_limit is 2, not 5", "update_queue"],
        ),
        (trioboss.QueueInUse("dead", ["a", "b"]), ["'dead'", "'a', 'b'", "update those first"]),
        (trioboss.PayloadError("data.a[0]", "set is not JSON"), ["data.a[0]: set is not JSON"]),
        (trioboss.JobNotFound("email", [ID], "active"), ["no active job", str(ID), "'email'"]),
        (trioboss.LeaseLost("email", [ID]), [str(ID), "'email'", "nothing was written"]),
        (trioboss.BatchFailed({ID: "no paper"}), ["1 of the batch failed", str(ID)]),
        (trioboss.SchemaOutOfDate("jobs", None, 4), ["'jobs'", "not installed", "trioboss migrate"]),
        (trioboss.SchemaOutOfDate("jobs", 2, 4), ["version 2", "4 is needed", "trioboss migrate"]),
        (trioboss.SchemaOutOfDate("jobs", 9, 4), ["version 9", "newer than 4", "upgrade trioboss"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_message_names_the_cause_and_the_remedy(error, parts):
    for part in parts:
        assert part in str(error)


def test_errors_have_attributes_for_programs():
    assert trioboss.UnknownQueue("email").queue == "email"
    assert trioboss.QueueExists("email", {"policy": (1, 2)}).differing == {"policy": (1, 2)}
    assert trioboss.QueueInUse("dead", ["a"]).users == ("a",)
    assert trioboss.JobNotFound("email", [ID], "active").ids == (ID,)
    assert trioboss.LeaseLost("email", [ID]).ids == (ID,)
    assert trioboss.BatchFailed({ID: "x"}).errors == {ID: "x"}
    assert trioboss.SchemaOutOfDate("jobs", 2, 4).found == 2
    assert trioboss.SchemaOutOfDate("jobs", 2, 4).needed == 4


def test_of_many_ids_the_message_shows_a_few():
    lost = trioboss.LeaseLost("email", [ID] * 1000)

    assert "and 995 more" in str(lost)
    assert len(lost.ids) == 1000


def test_the_remedy_depends_on_the_cause():
    with_policy = {"policy": ("standard", "short"), "retry_limit": (1, 2)}
    assert str(trioboss.QueueExists("q", with_policy)).endswith("delete it first, policy cannot be changed")
    assert str(trioboss.QueueExists("q", {"retry_limit": (1, 2)})).endswith("use update_queue")
    assert str(trioboss.UnknownQueue("__state__completed__q")).endswith(
        "call fetch_completed or on_complete for 'q' first"
    )


def test_a_traceback_names_the_page_and_what_is_stored_of_an_error_does_not():
    error = trioboss.UnknownQueue("email")
    page = errors.PAGE.partition("/main/")[2]

    assert errors.PAGE in "".join(traceback.format_exception(error))
    assert (Path(__file__).parent.parent.parent / page).exists()
    assert "notes" not in json.loads(describe_error(error))
    assert errors.PAGE not in error_line(error)


GROUP = ExceptionGroup("Exceptions from Trio nursery", [KeyError("k")])


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("no\nsuch\n  mailbox"), "ValueError: no such mailbox"),
        (ValueError("two  spaces"), "ValueError: two  spaces"),
        (GROUP, "KeyError: 'k'"),
        (ExceptionGroup("outer", [GROUP]), "KeyError: 'k'"),
        (ExceptionGroup("outer", [GROUP, ValueError("v")]), "ExceptionGroup: KeyError: 'k'; ValueError: v"),
    ],
)
def test_a_line_about_an_error_has_its_whole_message_and_looks_into_groups(error, line):
    assert error_line(error) == line
    assert described_line(json.loads(describe_error(error))) == line


def test_a_line_about_a_stored_error_takes_any_document():
    nested = {"errors": [{}]}
    for _ in range(500):
        nested = {"name": "n", "message": "m", "errors": [nested]}

    assert [described_line(each) for each in (None, "text", {"code": 3}, nested)] == ["", "text", "", "n: m"]


def test_a_line_about_an_error_is_short_however_deep_and_long_it_is():
    group = GROUP
    for _ in range(5000):
        group = ExceptionGroup("deep", [group])

    assert len(error_line(group)) < 600
    assert len(error_line(ValueError("line\n" * 10_000_000))) <= 500
