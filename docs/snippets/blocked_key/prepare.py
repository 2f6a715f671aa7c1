"""Makes the situation that the guide repairs: the second transfer of ann has failed, and blocks her key."""

from uuid import UUID

import trioboss

TRANSFERS = [("ann", "10"), ("ann", "ten"), ("ann", "20"), ("bob", "30")]

with trioboss.SyncBoss() as boss:
    boss.create_queue("transfers-failed")
    boss.create_queue("transfers", policy="key_strict_fifo", retry_limit=0, dead_letter="transfers-failed")
    for number, (account, amount) in enumerate(TRANSFERS, start=1):
        id = UUID(f"0190a5c4-0000-7000-8000-{number:012}")
        boss.send("transfers", {"number": number, "amount": amount}, singleton_key=account, id=id)
    while jobs := boss.fetch("transfers"):
        for job in jobs:
            amount = job.data["amount"]
            if amount.isdigit():
                boss.complete("transfers", job)
            else:
                boss.fail("transfers", job, {"name": "ValueError", "message": f"{amount!r} is not a number"})
