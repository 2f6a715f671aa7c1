"""Steps that wait: a statement that meets an open transaction of a caller, and goes on when that has ended.

Its outcome has to be the same as if it had been made after the end of that transaction.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

import attrs
from lifecycle_frame import fence
from lifecycle_machine import LifecycleMachine
from lifecycle_sessions import OWN
from lifecycle_values import Layer, SendRequest

from trioboss.errors import JobNotFound, LeaseLost
from trioboss.model.job import Job
from trioboss.postgres.operation import Operation

T = TypeVar("T")


@attrs.frozen
class Waited:
    """A statement that has waited: what the model expected, its answer, and its changes."""

    expected: Any
    answer: Any
    layer: Layer


class WaitingMachine(LifecycleMachine):
    """Steps that a transaction of a caller makes wait."""

    def send_and_wait(self, request: SendRequest, *, commits: bool) -> None:
        waited = self.wait(
            lambda layer: request.id if self.model.send(layer, request) else None,
            lambda own: self.send_operation(request, own=own),
            commits=commits,
        )
        if waited is not None:
            assert waited.answer == waited.expected
            self.saw_sent(waited.layer, [request])
            self.finish(waited.layer, OWN)

    def settle_and_wait(self, name: str, job: Job, *, commits: bool) -> None:
        def predict(layer: Layer) -> set[UUID]:
            current = self.model.current(layer, [fence(job, by_id=False)])
            getattr(self.model, name)(layer, current)
            return {each.id for each in current}

        waited = self.wait(
            predict,
            lambda own: self.operations(name)(job.queue, [job], own=own),
            commits=commits,
            about=job.id,
        )
        if waited is not None:
            assert waited.answer == waited.expected
            self.finish(waited.layer, OWN)

    def change_and_wait(self, name: str, queue: str, id: UUID, *, commits: bool) -> None:
        operation = getattr(self.sessions.store.changing, name)
        waited = self.wait(
            lambda layer: set(getattr(self.model, name)(layer, queue, [id])),
            lambda own: operation(queue, [id], own=own),
            commits=commits,
            about=id,
        )
        if waited is not None:
            assert waited.answer == waited.expected
            if name == "resume":
                self.witness.irregular |= waited.expected
            self.finish(waited.layer, OWN)

    def wait(
        self,
        predict: Callable[[Layer], Any],
        operation: Callable[[bool], Operation[Any]],
        *,
        commits: bool,
        about: UUID | None = None,
    ) -> Waited | None:
        """Run a statement that must wait; None if it need not, or if the row it waits for is replaced meanwhile."""
        self.begin(OWN)
        if not self.blockers(predict) or any(self.replaces(draft, about) for draft in self.drafts.values()):
            return None

        def end_blocker() -> None:
            blockers = self.blockers(predict)
            assert blockers, "it waits for a transaction that the model does not expect it to wait for"
            self.end_transaction(blockers[0], commits=commits)

        try:
            answer = self.sessions.run_waiting(operation, end_blocker)
        except (LeaseLost, JobNotFound):
            answer = set()
        if hasattr(answer, "ids"):
            answer = set(answer.ids)
        layer = Layer(self.model.committed)
        return Waited(predict(layer), answer, layer)

    def blockers(self, predict: Callable[[Layer], Any]) -> list[int]:
        """The callers that it would wait for now."""
        layer = Layer(self.model.committed)
        predict(layer)
        return [session for session, draft in sorted(self.drafts.items()) if layer.must_wait_for(draft)]

    @staticmethod
    def replaces(draft: Layer, id: UUID | None) -> bool:
        """Whether a transaction takes a job out of the live table and brings it back."""
        job = draft.get(id) if id is not None else None
        return job is not None and job.is_live and id in draft.gone
