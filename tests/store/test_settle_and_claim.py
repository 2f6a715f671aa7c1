"""The operation of the dispatchers: what is one transaction, and what is on disk before it is answered."""

from datetime import UTC, datetime

import attrs
import psycopg
import pytest
import trio
from store_helpers import open_quiet_boss, until_blocked

from trioboss.model.ids import make_id
from trioboss.model.job import Lease
from trioboss.model.settle_and_claim import ClaimRequest, Failure, Settlements
from trioboss.postgres.executor import execute
from trioboss.postgres.operation import InParallel
from trioboss.store.claiming import ClaimOperations
from trioboss.store.settle_and_claim import SettleAndClaimOperations

BULK = 200
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def leases(count):
    return [Lease(make_id(), 1, NOON) for _ in range(count)]


@pytest.fixture(params=["standard", "key_strict_fifo"])
async def operations(request, dsn):
    """The operations on a queue that is in the cache of its context."""
    async with open_quiet_boss(dsn) as boss:
        await boss.create_queue("q", policy=request.param)
        context = boss._store.context
        context.remember([await boss.get_queue("q")])
        yield SettleAndClaimOperations(context)


def is_keyed(operations):
    return operations._context.cached("q").policy.is_keyed


def transactions_of(request):
    batches = request.batches if isinstance(request, InParallel) else (request,)
    return [transaction for batch in batches for transaction in batch.transactions]


def names_of(request):
    return [bound.statement.name for transaction in transactions_of(request) for bound in transaction]


def values_of(bound):
    return dict(zip(bound.statement.parameters, bound.parameters, strict=True))


def completing(request):
    """The transaction that completes jobs."""
    (transaction,) = [
        transaction
        for transaction in transactions_of(request)
        if any(bound.statement.name == "complete" for bound in transaction)
    ]
    return transaction


def waits_for_the_disk(transaction):
    return all(values_of(bound).get("async_commit") != b"t" for bound in transaction)


@pytest.mark.parametrize("idle", [None, True, False])
@pytest.mark.parametrize("count", [1, BULK])
@pytest.mark.parametrize("limit", [1, BULK])
async def test_the_transaction_that_settles_waits_for_the_disk(operations, count, limit, idle):
    settlements = Settlements(completed=[(lease, "null") for lease in leases(count)])

    request = next(operations.settle_and_claim("q", settlements, ClaimRequest(limit=limit, idle=idle)))

    assert waits_for_the_disk(completing(request))


async def test_a_claim_alone_is_committed_asynchronously(operations):
    request = next(operations.settle_and_claim("q", Settlements(), ClaimRequest()))

    assert not waits_for_the_disk(transactions_of(request)[-1])


async def test_a_claim_alone_does_not_make_the_next_one_asynchronous(operations):
    request = ClaimRequest(limit=1)
    settlements = Settlements(completed=[(lease, "null") for lease in leases(1)])
    next(operations.settle_and_claim("q", Settlements(), request))

    batch = next(operations.settle_and_claim("q", settlements, request))

    assert waits_for_the_disk(completing(batch))


async def test_the_lock_of_admission_is_not_held_while_the_disk_is_written(operations):
    settlements = Settlements(completed=[(lease, "null") for lease in leases(1)])

    request = next(operations.settle_and_claim("q", settlements, ClaimRequest()))

    locking = [
        [bound.statement.name for bound in transaction]
        for transaction in transactions_of(request)
        if any(bound.statement.name == "lock_admission" for bound in transaction)
    ]
    expected = ["lock_admission", "admit_and_claim", "find_next_due"]
    assert locking == ([expected] if is_keyed(operations) else [])


@attrs.frozen
class Kind:
    settlements: Settlements
    parallel: bool


COMPLETED = [(lease, "null") for lease in leases(BULK)]
KINDS = {
    "many completed": Kind(Settlements(COMPLETED), parallel=True),
    "few completed": Kind(Settlements(COMPLETED[:5]), parallel=False),
    "one of many failed": Kind(Settlements(COMPLETED, [(leases(1)[0], Failure("null"))]), parallel=False),
    "one of many released": Kind(Settlements(COMPLETED, released=leases(1)), parallel=False),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_only_many_completed_jobs_are_settled_in_parallel_to_a_claim_of_many(operations, kind):
    settlements = KINDS[kind].settlements

    request = next(operations.settle_and_claim("q", settlements, ClaimRequest(limit=BULK)))

    assert isinstance(request, InParallel) == (KINDS[kind].parallel and not is_keyed(operations))


async def test_the_statements_of_a_claim_are_kept_only_while_its_terms_are_the_same(operations):
    context, request = operations._context, ClaimRequest(limit=1)
    claims, queue = ClaimOperations(context), context.cached("q")

    def plan(queue=queue, request=request):
        return claims.plan(queue, request, promote_due=False, async_commit=True).claim

    def claiming(statements):
        return next(bound for bound in statements if bound.statement.name.startswith(("claim", "admit")))

    kept = plan()
    assert plan() is kept

    elsewhere = attrs.evolve(queue, table_name="j" + "0" * 32)
    assert elsewhere.table_name in claiming(plan(elsewhere)).statement.text
    assert values_of(claiming(plan()))["now"] is None
    context.now = NOON
    assert values_of(claiming(plan()))["now"] == NOON.isoformat().encode()
    assert values_of(claiming(plan(request=ClaimRequest(limit=2))))["limit"] == b"2"


@pytest.mark.parametrize("find_next_due", [True, False])
async def test_the_next_due_time_is_found_only_if_it_is_requested(operations, find_next_due):
    request = ClaimRequest(find_next_due=find_next_due, promote_due=False)

    batch = next(operations.settle_and_claim("q", Settlements(), request))

    assert ("find_next_due" in names_of(batch)) == find_next_due


@pytest.mark.parametrize("promote_due", [True, False])
async def test_due_jobs_are_promoted_before_the_claim_if_that_is_asked_for(operations, promote_due):
    batch = next(operations.settle_and_claim("q", Settlements(), ClaimRequest(promote_due=promote_due)))

    assert names_of(batch)[0].startswith("promote_due") == promote_due


async def test_without_a_claim_the_call_waits_for_its_notifications(operations):
    settlements = Settlements(completed=[(lease, "null") for lease in leases(1)])
    alone = next(operations.settle_and_claim("q", settlements, None))
    with_a_claim = next(operations.settle_and_claim("q", settlements, ClaimRequest()))

    assert (alone.await_follow_up, with_a_claim.await_follow_up) == (True, False)
    assert alone.follow_up == with_a_claim.follow_up


@pytest.mark.parametrize("with_claim", [True, False])
async def test_a_job_stays_in_the_history_if_its_queue_keeps_jobs_since_it_was_cached(boss, dsn, with_claim):
    store, worker = boss._store, make_id()
    await boss.create_queue("q", keep_completed=False)
    await boss.send("q")
    (job,) = (await execute(store.claiming.claim("q", ClaimRequest(1, worker)), boss._pool)).jobs
    cached = await boss.get_queue("q")
    async with open_quiet_boss(dsn) as other:
        await other.update_queue("q", keep_completed=True)
    store.context.remember([cached])
    settlements = Settlements(completed=[(job.lease, '"out"')])
    request = ClaimRequest(1, worker) if with_claim else None
    answer = await execute(store.settle_and_claim.settle_and_claim("q", settlements, request), boss._pool)

    assert answer.settled == {job.id: "completed"}
    assert (await boss.get_job_by_id("q", job.id)).output == "out"


@pytest.mark.parametrize(
    ("options", "statement"),
    [({}, "complete"), ({"keep_completed": False}, "complete_unkept")],
)
async def test_jobs_that_leave_no_row_have_a_statement_that_reads_no_row(boss, options, statement):
    await boss.create_queue("q", **options)
    await boss.send("q")
    settlements = Settlements(completed=[(lease, "null") for lease in leases(1)])

    operation = boss._store.settle_and_claim.settle_and_claim("q", settlements, None)
    assert [name for name in names_of(next(operation)) if name.startswith("complete")] == [statement]


async def test_a_claim_beside_a_failure_whose_slot_was_taken_meanwhile_is_reported_as_unknown(
    boss, dsn, database
):
    """The claim of a keyed queue is a transaction of its own: it may succeed where the failure does not."""
    store, worker = boss._store, make_id()
    await boss.create_queue("q", policy="singleton", retry_limit=3)
    await boss.send_singleton("q", {}, singleton_key="k")
    claim = store.claiming.claim("q", ClaimRequest(1, worker))
    (job,) = (await execute(claim, boss._pool)).jobs
    await boss.send("q", singleton_key="other")
    failed = Settlements(failed=[(job.lease, Failure('"no"'))])
    with psycopg.connect(dsn) as caller:
        await boss.send_singleton("q", {}, singleton_key="k", conn=caller)
        async with trio.open_nursery() as nursery:
            answer = []

            async def settle() -> None:
                operation = store.settle_and_claim.settle_and_claim("q", failed, ClaimRequest(5, worker))
                answer.append(await execute(operation, boss._pool))

            nursery.start_soon(settle)
            await until_blocked(database)
            caller.commit()

    assert answer[0].claim is None
    assert list(answer[0].settled) == [job.id]
