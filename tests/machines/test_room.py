"""RoomWaiters: no slot stays free while a dispatcher has jobs for it, and dispatchers take turns."""

import attrs
import pytest

from trioboss.machines.room import RoomWaiters


@attrs.frozen
class World:
    """A worker with a few slots and a few queues, between two steps."""

    free: int
    """Slots that are neither reserved nor running a job."""
    running: int
    unsent: tuple[int, ...]
    """Jobs that will still be sent to each queue."""
    jobs: tuple[int, ...]
    """Those that wait there."""
    woken: frozenset[int]
    """Dispatchers that run next, in any order."""
    claims: tuple[int, ...]
    """For each dispatcher the slots that its claim under way has reserved; 0 if there is none."""
    waiting: tuple[int, ...]

    def steps(self):
        """All worlds that can follow."""
        for queue, unsent in enumerate(self.unsent):
            if unsent:
                jobs = add(self.jobs, queue, 1)
                yield attrs.evolve(self, unsent=add(self.unsent, queue, -1), jobs=jobs).wake(queue)
            if self.claims[queue]:
                yield self.answer(queue)
        for dispatcher in self.woken:
            if not self.claims[dispatcher]:  # during a statement it does not run
                yield self.run(dispatcher)
        if self.running:
            after = attrs.evolve(self, running=self.running - 1, free=self.free + 1)
            yield after.wake(after.open().next(after.free))

    def run(self, dispatcher):
        """The dispatcher has nothing to claim, or claims as much as it may, or waits for room."""
        waiters = self.open()
        after = attrs.evolve(self, woken=self.woken - {dispatcher})
        room = waiters.room_for(dispatcher, self.free)
        if not self.jobs[dispatcher]:
            return after.close(waiters, waiters.leave(dispatcher, self.free))
        if room > 0:
            after = attrs.evolve(after, free=self.free - room, claims=add(self.claims, dispatcher, room))
            return after.close(waiters, waiters.leave(dispatcher, after.free))
        return after.close(waiters, waiters.wait(dispatcher, self.free))

    def answer(self, dispatcher):
        """The jobs that its claim found run; the dispatcher goes on."""
        room = self.claims[dispatcher]
        found = min(room, self.jobs[dispatcher])
        return attrs.evolve(
            self,
            free=self.free + room - found,
            running=self.running + found,
            jobs=add(self.jobs, dispatcher, -found),
            claims=add(self.claims, dispatcher, -room),
        ).wake(dispatcher)

    def wake(self, dispatcher):
        return self if dispatcher is None else attrs.evolve(self, woken=self.woken | {dispatcher})

    def open(self):
        waiters = RoomWaiters()
        for dispatcher in self.waiting:
            waiters.wait(dispatcher, 0)
        return waiters

    def close(self, waiters, woken):
        return attrs.evolve(self, waiting=tuple(waiters._waiting)).wake(woken)


def add(counts, position, number):
    return (*counts[:position], counts[position] + number, *counts[position + 1 :])


@pytest.mark.parametrize(("queues", "slots", "jobs"), [(2, 1, 4), (2, 3, 4), (3, 1, 2)])
def test_in_no_order_of_steps_a_slot_stays_free_while_a_job_waits_for_it(queues, slots, jobs):
    zeros = (0,) * queues
    first = World(slots, 0, (jobs,) * queues, zeros, frozenset(), zeros, ())
    seen, left = {first}, [first]
    while left:
        world = left.pop()
        rests = not world.woken and not any(world.claims)
        assert not (rests and world.free and any(world.jobs)), world
        for after in world.steps():
            if after not in seen:
                seen.add(after)
                left.append(after)
    assert len(seen) > 1000


def test_a_dispatcher_leaves_one_place_to_each_that_has_waited_longer():
    waiters = RoomWaiters()
    waiters.wait("a", 0)
    waiters.wait("b", 0)
    waiters.wait("c", 0)

    assert [waiters.room_for(each, 5) for each in ("a", "b", "c", "new")] == [5, 4, 3, 2]


def test_the_one_that_has_waited_longest_is_woken():
    waiters = RoomWaiters()
    waiters.wait("a", 0)
    waiters.wait("b", 0)
    waiters.wait("a", 0)

    assert waiters.next(0) is None
    assert waiters.next(1) == "a"
    assert waiters.leave("a", 1) == "b"
    assert waiters.leave("b", 1) is None
