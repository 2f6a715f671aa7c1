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


# -- sent
async def test_what_a_function_sends(boss: trioboss.Boss) -> None:
    await boss.create_queue("shop-orders", policy="key_strict_fifo", retry_limit=0)

    await handle_order.send(Order(1, ["pen"]), boss=boss, singleton_key="ann")

    (job,) = await boss.find_jobs("shop-orders", data={"number": 1})  # data contains this
    assert (job.singleton_key, job.state) == ("ann", "created")


# -- blocked
async def test_a_failed_order_blocks_the_later_ones_of_its_customer(boss: trioboss.Boss) -> None:
    await app.start(boss)
    async with record(boss.events()) as recorder:
        failed = await handle_order.send(Order(1, []), singleton_key="ann")
        later = await handle_order.send(Order(2, ["book"]), singleton_key="ann")
        with trio.fail_after(60):
            await recorder.wait_for(trioboss.JobFailed)

        assert failed is not None
        assert later is not None
        why = await boss.why("shop-orders", later)
        assert (why.reason, why.behind) == (trioboss.Reason.BLOCKED_KEY, failed)

        await boss.delete_job("shop-orders", failed)
        with trio.fail_after(60):
            assert (await boss.wait_for("shop-orders", later)).output == 5


# -- rollback
async def test_a_rolled_back_transaction_sends_nothing(boss: trioboss.Boss) -> None:
    await boss.create_queue("shop-orders", policy="key_strict_fifo", retry_limit=0)

    async def send_and_fail() -> None:
        async with boss.transaction() as conn:
            await handle_order.send(Order(1, ["pen"]), boss=boss, conn=conn, singleton_key="ann")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await send_and_fail()

    assert await boss.get_queue_size("shop-orders") == 0


# -- end
if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
