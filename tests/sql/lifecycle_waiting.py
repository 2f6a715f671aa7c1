"""Steps that wait: a statement that meets a caller's open transaction, and goes on when that has ended.

It has to come out as if it had been made after the end of that transaction.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

import attrs
from lifecycle_desk import OWN
from lifecycle_machine import LifecycleMachine, fence
from lifecycle_values import Layer, Order

from trioboss.errors import JobNotFound, LeaseLost
from trioboss.model.job import Job
from trioboss.postgres.operation import Operation

T = TypeVar("T")


@attrs.frozen
class Waited:
    """A statement that has waited: what the model expected, what was said, and what it changed."""

    expected: Any
    said: Any
    layer: Layer


class WaitingMachine(LifecycleMachine):
    """What a caller's transaction is in the way of."""

    def send_and_wait(self, order: Order, *, commits: bool) -> None:
        waited = self.wait(
            lambda layer: order.id if self.model.send(layer, order) else None,
            lambda own: self.send_verb(order, own=own),
            commits=commits,
        )
        if waited is not None:
            assert waited.said == waited.expected
            self.saw_sent(waited.layer, [order])
            self.finish(waited.layer, OWN)

    def settle_and_wait(self, name: str, job: Job, *, commits: bool) -> None:
        def predict(layer: Layer) -> set[UUID]:
            current = self.model.current(layer, [fence(job, by_id=False)])
            getattr(self.model, name)(layer, current)
            return {each.id for each in current}

        waited = self.wait(
            predict, lambda own: self.verbs(name)(job.queue, [job], own=own), commits=commits, about=job.id
        )
        if waited is not None:
            assert waited.said == waited.expected
            self.finish(waited.layer, OWN)

    def change_and_wait(self, name: str, queue: str, id: UUID, *, commits: bool) -> None:
        verb = getattr(self.desk.store.settling, name)
        waited = self.wait(
            lambda layer: set(getattr(self.model, name)(layer, queue, [id])),
            lambda own: verb(queue, [id], own=own),
            commits=commits,
            about=id,
        )
        if waited is not None:
            assert waited.said == waited.expected
            if name == "resume":
                self.witness.irregular |= waited.expected
            self.finish(waited.layer, OWN)

    def wait(
        self,
        predict: Callable[[Layer], Any],
        verb: Callable[[bool], Operation[Any]],
        *,
        commits: bool,
        about: UUID | None = None,
    ) -> Waited | None:
        """Run a statement that must wait; None if it need not, or if what it waits for is replaced meanwhile."""
        self.begin(OWN)
        if not self.blockers(predict) or any(self.replaces(draft, about) for draft in self.drafts.values()):
            return None

        def end_blocker() -> None:
            blockers = self.blockers(predict)
            assert blockers, "it waits for nobody the model knows of"
            self.end_transaction(blockers[0], commits=commits)

        try:
            said = self.desk.say_patiently(verb, end_blocker)
        except (LeaseLost, JobNotFound):
            said = set()
        if hasattr(said, "ids"):
            said = set(said.ids)
        layer = Layer(self.model.committed)
        return Waited(predict(layer), said, layer)

    def blockers(self, predict: Callable[[Layer], Any]) -> list[int]:
        """The callers that it would wait for now."""
        layer = Layer(self.model.committed)
        predict(layer)
        return [hand for hand, draft in sorted(self.drafts.items()) if layer.must_wait_for(draft)]

    @staticmethod
    def replaces(draft: Layer, id: UUID | None) -> bool:
        """Whether a transaction takes a job away and brings it back."""
        job = draft.get(id) if id is not None else None
        return job is not None and job.is_hot and id in draft.gone
