"""A wake-up that cannot be lost and cannot pile up."""

import trio
import trio.testing

from trioboss.actors.actor import Doorbell


async def test_a_ring_before_the_wait_is_not_lost():
    bell = Doorbell()
    bell.ring()

    with trio.fail_after(1):
        await bell.wait()


async def test_rings_do_not_pile_up():
    bell = Doorbell()
    bell.ring()
    bell.ring()
    await bell.wait()

    with trio.move_on_after(10) as scope:
        await bell.wait()
    assert scope.cancelled_caught


async def test_a_ring_wakes_the_waiting_task():
    bell = Doorbell()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bell.wait)
        await trio.testing.wait_all_tasks_blocked()
        bell.ring()


async def test_it_returns_whether_it_was_rung_or_the_time_was_over():
    bell = Doorbell()
    assert await bell.wait_until(trio.current_time() + 5) is False
    bell.ring()

    assert await bell.wait_until(trio.current_time() + 5) is True
    assert trio.current_time() == 5


async def test_a_ring_at_the_deadline_is_kept_for_the_next_wait():
    bell = Doorbell()
    bell.ring()
    await bell.wait_until(trio.current_time())

    assert await bell.wait_until(trio.current_time() + 1) is True


async def test_a_cancelled_wait_consumes_no_ring():
    bell = Doorbell()
    with trio.CancelScope() as scope:
        scope.cancel()
        await bell.wait()
    bell.ring()

    assert await bell.wait_until(trio.current_time() + 1) is True


async def test_a_doorbell_with_a_pace_wakes_no_more_often_than_that():
    bell = Doorbell(0.05)
    answers = []

    async def answer():
        while True:
            await bell.wait()
            answers.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        for _ in range(1000):
            bell.ring()
            await trio.sleep(0.001)
        nursery.cancel_scope.cancel()

    assert 15 <= len(answers) <= 21


async def test_a_doorbell_with_a_pace_wakes_at_once_after_a_pause_and_loses_no_ring():
    bell = Doorbell(0.05)
    for _ in range(3):
        began = trio.current_time()
        bell.ring()
        await bell.wait()
        assert trio.current_time() == began
        bell.ring()
        assert await bell.wait_until(began + 0.01) is False
        await bell.wait()
        assert trio.current_time() == began + 0.05
        await trio.sleep(1)
