"""The verb of the runtime: what goes together, and what has to be on disk before it is answered."""

from datetime import UTC, datetime

import attrs
import pytest
from store_helpers import open_quiet_boss

from trioboss.model.exchange import Failure, Settlements, Wanted
from trioboss.model.job import Lease, make_id
from trioboss.postgres.conversation import Together
from trioboss.store.exchanging import ExchangeVerbs

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
        yield ExchangeVerbs(context)


def transactions_of(request):
    flushes = request.flushes if isinstance(request, Together) else (request,)
    return [transaction for flush in flushes for transaction in flush.transactions]


def values_of(step):
    return dict(zip(step.statement.parameters, step.parameters, strict=True))


@pytest.mark.parametrize("asleep", [None, True, False])
@pytest.mark.parametrize("count", [1, CROWD])
@pytest.mark.parametrize("limit", [1, CROWD])
async def test_what_settles_waits_for_the_disk_whatever_goes_with_it(verbs, count, limit, asleep):
    settlements = Settlements(completed=[(lease, "null") for lease in leases(count)])
    request = next(verbs.exchange("q", settlements, Wanted(limit=limit), asleep=asleep))

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
    request = next(verbs.exchange("q", settlements, Wanted(limit=CROWD)))

    keyed = verbs._context.recall("q").policy.is_keyed
    assert isinstance(request, Together) == (KINDS[kind].together and not keyed)
