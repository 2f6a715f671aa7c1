"""How many jobs of a key a policy allows in each state. tests/docs/test_drawings.py compares it with the database."""

from collections.abc import Callable
from functools import partial

import attrs

from docs.drawings.svg import Canvas, Theme
from trioboss.model.policy import Policy

__all__ = ["LIMITS", "POLICY_DRAWINGS", "Limits"]


@attrs.frozen
class Limits:
    """Whether only one job of a key may be in a state."""

    created: bool = False
    retry: bool = False
    active: bool = False
    in_all: bool = False
    """One job in all three states together."""
    keeps_key: bool = False
    """A job keeps its key while it waits for another attempt, and after it has failed."""


LIMITS = {
    Policy.STANDARD: Limits(),
    Policy.SHORT: Limits(created=True),
    Policy.SINGLETON: Limits(active=True),
    Policy.STATELY: Limits(created=True, retry=True, active=True),
    Policy.EXCLUSIVE: Limits(created=True, retry=True, active=True, in_all=True),
    Policy.KEY_STRICT_FIFO: Limits(retry=True, active=True, keeps_key=True),
}
_TEXTS = {
    Policy.STANDARD: "any number of jobs in each state",
    Policy.SHORT: "a second job is refused while one is created",
    Policy.SINGLETON: "jobs of a key run one at a time, the others wait",
    Policy.STATELY: "one job of a key in each state",
    Policy.EXCLUSIVE: "a second job is refused until the first has ended",
    Policy.KEY_STRICT_FIFO: "one at a time in the order of commit, and a failed job blocks its key",
}
_COLUMN, _LEFT, _TOP = 170.0, 20.0, 34.0


def _draw_policy(policy: Policy, theme: Theme) -> str:
    limits = LIMITS[policy]
    columns = ["created", "retry", "active", *(["failed"] if limits.keeps_key else [])]
    canvas = Canvas(_LEFT * 2 + _COLUMN * len(columns), 150, theme, f"The policy {policy}: {_TEXTS[policy]}")
    if limits.in_all:
        canvas.box(_LEFT, _TOP - 2, _COLUMN * 3, 76, dashed=True)
    for number, state in enumerate(columns):
        x = _LEFT + _COLUMN * (number + 0.5)
        canvas.text(x, 16, state, bold=True)
        if limits.in_all:
            note = "or" if state != "active" else ""
            _draw_jobs(canvas, x, 1, state, "", dashed=True)
            canvas.text(x + _COLUMN / 2, _TOP + 25, note, faint=True)
        elif state == "failed":
            _draw_jobs(canvas, x, 1, state, "blocks its key")
        else:
            one = bool(getattr(limits, state))
            _draw_jobs(canvas, x, 1 if one else 3, state, "one" if one else "any number")
    if limits.in_all:
        canvas.text(_LEFT + _COLUMN * 1.5, _TOP + 60, "one in all", size=11.5, faint=True)
    canvas.text(_LEFT, 130, f"For each key: {_TEXTS[policy]}.", size=12, anchor="start", faint=True)
    return canvas.render()


def _draw_jobs(canvas: Canvas, x: float, count: int, state: str, note: str, *, dashed: bool = False) -> None:
    fill = {"active": canvas.theme.accent, "failed": canvas.theme.bad}.get(state, "")
    for number in range(count):
        canvas.box(x - 22 * count + 3 + 44 * number, _TOP + 6, 38, 38, fill=fill, dashed=dashed)
    canvas.text(x, _TOP + 60, note, size=11.5, faint=True)


POLICY_DRAWINGS: dict[str, Callable[[Theme], str]] = {
    f"policy-{policy.value.replace('_', '-')}": partial(_draw_policy, policy) for policy in Policy
}
