# -- imports
import pytest
import trio
from orders import Order, app, handle_order, price_of

import trioboss
from trioboss.testing import record


# -- plain
def test_the_price_of_an_order() -> None:
    assert price_of(Order(1, ["book", "pen"])) == 10


# -- handler
async def test_an_order_is_handled(boss: trioboss.Boss) -> None:
    await app.start(boss)

    id = await handle_order.send(Order(1, ["book"]), singleton_key="ann")

    with trio.fail_after(60):
        job = await boss.wait_for("shop-orders", id)
    assert (job.state, job.output) == ("completed", 5)


# -- twice
async def test_an_order_that_is_handled_twice_has_one_invoice(boss: trioboss.Boss) -> None:
    @boss.use
    async def lose_the_first_result(job: trioboss.RunningJob, call_next: trioboss.CallNext) -> object:
        output = await call_next(job)  # the handler has done all its work
        if job.attempt == 1:
            raise ConnectionError("and its result is lost")
        return output

    await app.start(boss)

    id = await handle_order.send(Order(1, ["book"]), singleton_key="ann")

    with trio.fail_after(60):
        job = await boss.wait_for("shop-orders", id)
    assert (job.state, job.attempt) == ("completed", 2)
    async with boss.transaction() as conn:
        assert await (await conn.execute("SELECT * FROM invoice")).fetchall() == [(1, 5)]


# -- sent
async def test_orders_are_sent_with_their_customer_as_the_key(boss: trioboss.Boss) -> None:
    await app.start(boss, queues=[])  # creates the queues of the app, and starts no worker

    await handle_order.send(Order(1, ["pen"]), singleton_key="ann")

    (job,) = await boss.find_jobs("shop-orders", data={"number": 1})  # data contains this
    assert (job.singleton_key, job.state) == ("ann", "created")


# -- blocked
def is_final(event: trioboss.JobFailed) -> bool:
    return event.state == "failed"  # and not "retry"


async def test_a_failed_order_blocks_the_later_ones_of_its_customer(boss: trioboss.Boss) -> None:
    async with record(boss.events()) as recorder:
        await app.start(boss)
        failed = await handle_order.send(Order(1, []), singleton_key="ann")
        later = await handle_order.send(Order(2, ["book"]), singleton_key="ann")
        other = await handle_order.send(Order(3, ["pen"]), singleton_key="bob")
        assert failed is not None
        assert later is not None

        with trio.fail_after(60):
            (event,) = await recorder.wait_for(trioboss.JobFailed, is_final)
            await boss.wait_for("shop-orders", other)  # the other key goes on
        assert (event.id, event.attempt, event.blocked_key) == (failed, 2, "ann")
        assert str(event.exception) == "an order without items"
        assert await boss.get_blocked_keys("shop-orders") == ["ann"]
        why = await boss.why("shop-orders", later)
        assert (why.reason, why.behind) == (trioboss.Reason.BLOCKED_KEY, failed)

        await boss.delete_job("shop-orders", failed)
        with trio.fail_after(60):
            assert (await boss.wait_for("shop-orders", later)).output == 5


# -- retried
async def test_the_later_orders_wait_for_the_retry_of_the_failed_one(boss: trioboss.Boss) -> None:
    async with record(boss.events()) as recorder:
        await app.start(boss)
        failed = await handle_order.send(Order(1, []), singleton_key="ann")
        later = await handle_order.send(Order(2, ["book"]), singleton_key="ann")
        assert failed is not None
        assert later is not None
        with trio.fail_after(60):
            await recorder.wait_for(trioboss.JobFailed, is_final)

        async with boss.transaction() as conn:
            await boss.retry("shop-orders", failed, conn=conn)
            await boss.update_job("shop-orders", failed, data={"number": 1, "items": ["pen"]}, conn=conn)

        with trio.fail_after(60):
            first = await boss.wait_for("shop-orders", failed)
            second = await boss.wait_for("shop-orders", later)
        assert first.completed_on is not None
        assert second.started_on is not None
        assert first.completed_on <= second.started_on


# -- rollback
async def test_a_rolled_back_transaction_sends_nothing(boss: trioboss.Boss) -> None:
    await app.start(boss, queues=[])

    async def send_and_fail() -> None:
        async with boss.transaction() as conn:
            await handle_order.send(Order(1, ["pen"]), conn=conn, singleton_key="ann")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await send_and_fail()

    assert await boss.get_queue_size("shop-orders") == 0


# -- end
if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
