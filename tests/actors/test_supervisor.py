"""The supervisor restarts actors that crash, and gives up when they crash too often."""

import pytest
import trio

from trioboss.actors.actor import Supervisor
from trioboss.errors import SupervisorGaveUp
from trioboss.events import ActorRestarted


async def test_an_actor_that_crashes_is_restarted(reporter, events, nursery):
    starts = []

    async def actor():
        starts.append(trio.current_time())
        await trio.sleep(1)
        if len(starts) < 4:
            raise RuntimeError("crash")
        await trio.sleep_forever()

    supervisor = Supervisor(nursery, reporter)
    supervisor.start("actor", actor)
    await trio.sleep(10)

    assert starts == [0, 1, 2, 3]
    assert [(event.actor, event.error) for event in events.of(ActorRestarted)] == [
        ("actor", "RuntimeError: crash")
    ] * 3
    assert supervisor.statistics().restarts == {"actor": 3}
    assert supervisor.statistics().actors == ("actor",)


async def test_six_crashes_in_a_minute_are_too_many(reporter):
    crashes = []

    async def actor():
        await trio.sleep(1)
        crashes.append(trio.current_time())
        raise RuntimeError("crash")

    with pytest.raises(ExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            Supervisor(nursery, reporter).start("actor", actor)

    (error,) = caught.value.exceptions
    assert isinstance(error, SupervisorGaveUp)
    assert isinstance(error.__cause__, RuntimeError)
    assert crashes == [1, 2, 3, 4, 5, 6]


async def test_an_actor_whose_crashes_are_far_apart_is_always_restarted(reporter, nursery):
    async def actor():
        await trio.sleep(12.1)
        raise RuntimeError("crash")

    supervisor = Supervisor(nursery, reporter)
    supervisor.start("actor", actor)
    await trio.sleep(3600)

    assert supervisor.statistics().restarts["actor"] > 290


async def test_groups_of_errors_are_crashes_too(reporter, nursery):
    starts = []

    async def actor():
        starts.append(1)
        if len(starts) == 1:
            async with trio.open_nursery():
                raise ValueError("inside")
        await trio.sleep_forever()

    Supervisor(nursery, reporter).start("actor", actor)
    await trio.sleep(1)

    assert len(starts) == 2


async def test_crashes_are_counted_for_each_actor(reporter, nursery):
    async def actor():
        await trio.sleep(15)
        raise RuntimeError("crash")

    supervisor = Supervisor(nursery, reporter)
    for name in "abc":
        supervisor.start(name, actor)
    await trio.sleep(100)

    assert supervisor.statistics().restarts == {"a": 6, "b": 6, "c": 6}


async def test_an_actor_that_returns_is_not_restarted(reporter):
    starts = []

    async def actor():
        starts.append(1)

    async with trio.open_nursery() as nursery:
        Supervisor(nursery, reporter).start("actor", actor)

    assert len(starts) == 1


async def test_an_actor_that_has_ended_leaves_the_statistics_and_its_successor_stays(reporter, nursery):
    first, second = trio.Event(), trio.Event()
    supervisor = Supervisor(nursery, reporter)
    supervisor.start("actor", first.wait)
    supervisor.start("actor", second.wait)
    assert supervisor.statistics().actors == ("actor", "actor")

    first.set()
    await trio.sleep(1)
    assert supervisor.statistics().actors == ("actor",)

    second.set()
    await trio.sleep(1)
    assert supervisor.statistics().actors == ()
    assert supervisor.statistics().restarts == {}


async def test_a_cancellation_is_no_crash(reporter, events):
    async with trio.open_nursery() as nursery:
        Supervisor(nursery, reporter).start("actor", trio.sleep_forever)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()

    assert not events.of(ActorRestarted)
