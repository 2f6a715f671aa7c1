"""The verb of the runtime: what goes together, and what has to be on disk before it is answered."""

from datetime import UTC, datetime

import attrs
import pytest
from store_helpers import open_quiet_boss

from trioboss.model.job import Lease, make_id
from trioboss.model.settle_and_claim import ClaimRequest, Failure, Settlements
from trioboss.postgres.operation import InParallel
from trioboss.store.claiming import ClaimOperations
from trioboss.store.settle_and_claim import SettleAndClaimOperations

CROWD = 200
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def leases(count):
    return [Lease(make_id(), 1, NOON) for _ in range(count)]


@pytest.fixture(params=["standard", "key_strict_fifo"])
async def verbs(request, dsn):
    """The verb on a queue that it knows."""
    async with open_quiet_boss(dsn) as boss:
        await boss.create_queue("q", policy=request.param)
        context = boss._store.sending._context
        context.remember([await boss.get_queue("q")])
        yield SettleAndClaimOperations(context)


def transactions_of(request):
    batches = request.batches if isinstance(request, InParallel) else (request,)
    return [transaction for batch in batches for transaction in batch.transactions]


def values_of(step):
    return dict(zip(step.statement.parameters, step.parameters, strict=True))


@pytest.mark.parametrize("idle", [None, True, False])
@pytest.mark.parametrize("count", [1, CROWD])
@pytest.mark.parametrize("limit", [1, CROWD])
async def test_what_settles_waits_for_the_disk_whatever_goes_with_it(verbs, count, limit, idle):
    settlements = Settlements(completed=[(lease, "null") for lease in leases(count)])
    request = next(verbs.settle_and_claim("q", settlements, ClaimRequest(limit=limit), idle=idle))

    settling = [t for t in transactions_of(request) if any(s.statement.name == "complete" for s in t)]
    assert len(settling) == 1
    assert all(values_of(step).get("lazy") != b"t" for step in settling[0])


@attrs.frozen
class Kind:
    settlements: Settlements
    together: bool


COMPLETED = [(lease, "null") for lease in leases(CROWD)]
KINDS = {
    "many completed": Kind(Settlements(COMPLETED), together=True),
    "few completed": Kind(Settlements(COMPLETED[:5]), together=False),
    "one of many failed": Kind(Settlements(COMPLETED, [(leases(1)[0], Failure("null"))]), together=False),
    "one of many released": Kind(Settlements(COMPLETED, released=leases(1)), together=False),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_only_many_that_ended_well_are_settled_beside_a_claim_of_many(verbs, kind):
    settlements = KINDS[kind].settlements
    request = next(verbs.settle_and_claim("q", settlements, ClaimRequest(limit=CROWD)))

    keyed = verbs._context.recall("q").policy.is_keyed
    assert isinstance(request, InParallel) == (KINDS[kind].together and not keyed)


async def test_a_claim_that_settles_nothing_does_not_make_the_next_one_lazy(verbs):
    request = ClaimRequest(limit=1)
    settlements = Settlements(completed=[(lease, "null") for lease in leases(1)])
    next(verbs.settle_and_claim("q", Settlements(), request))

    batch = next(verbs.settle_and_claim("q", settlements, request))

    settling = [t for t in transactions_of(batch) if any(s.statement.name == "complete" for s in t)]
    assert all(values_of(step).get("lazy") != b"t" for step in settling[0])


async def test_a_claim_is_kept_only_while_table_time_and_what_is_wanted_are_the_same(verbs):
    context, request = verbs._context, ClaimRequest(limit=1)
    claims, queue = ClaimOperations(context), context.recall("q")
    kept = claims.claiming(queue, request, lazy=True)
    assert claims.claiming(queue, request, lazy=True) is kept

    elsewhere = attrs.evolve(queue, table_name="j" + "0" * 32)
    assert elsewhere.table_name in claims.claiming(elsewhere, request, lazy=True)[0].statement.text
    assert values_of(claims.claiming(queue, request, lazy=True)[0])["now"] is None
    context.now = NOON
    assert values_of(claims.claiming(queue, request, lazy=True)[0])["now"] == NOON.isoformat().encode()
    assert values_of(claims.claiming(queue, ClaimRequest(limit=2), lazy=True)[0])["limit"] == b"2"


@pytest.mark.parametrize("look", [True, False])
async def test_what_is_due_is_looked_for_where_it_is_asked_for_or_jobs_take_turns(verbs, look):
    request = next(
        verbs.settle_and_claim("q", Settlements(), ClaimRequest(find_next_due=look), promote_due=False)
    )

    keyed = verbs._context.recall("q").policy.is_keyed
    names = [step.statement.name for transaction in transactions_of(request) for step in transaction]
    assert ("find_due" in names) == (look or keyed)


async def test_who_claims_nothing_waits_until_all_was_said(verbs):
    settlements = Settlements(completed=[(lease, "null") for lease in leases(1)])
    alone = next(verbs.settle_and_claim("q", settlements, None))
    with_a_claim = next(verbs.settle_and_claim("q", settlements, ClaimRequest()))

    assert (alone.await_follow_up, with_a_claim.await_follow_up) == (True, False)
    assert alone.follow_up == with_a_claim.follow_up
