import runpy

import trioboss

runpy.run_path("prepare.py")  # makes the blocked key

with trioboss.SyncBoss() as boss:
    # begin repair
    (failed,) = boss.find_jobs("transfers", state="failed", singleton_key="ann")
    print("blocked:", boss.get_blocked_keys("transfers"), "by", failed.data)

    with boss.transaction() as conn:  # no worker takes the job before its data is right
        boss.retry("transfers", failed.id, conn=conn)
        boss.update_job("transfers", failed.id, data={**failed.data, "amount": "15"}, conn=conn)
    # end repair

    boss.fail(
        "transfers", boss.fetch("transfers"), {"name": "ConnectionError", "message": "the bank is closed"}
    )
    boss.retry("transfers", failed.id)
    while jobs := boss.fetch("transfers"):
        print("runs:", *(job.data for job in jobs))
        boss.complete("transfers", jobs)

    # begin copies
    for copy in boss.find_jobs("transfers-failed", source_id=failed.id):
        print("deletes the copy:", copy.data)
        boss.delete_job("transfers-failed", copy.id)
    # end copies
    print("dead letters:", boss.get_queue_size("transfers-failed"))
