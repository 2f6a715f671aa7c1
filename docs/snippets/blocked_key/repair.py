import runpy

import trioboss

runpy.run_path("prepare.py")  # makes the blocked key

with trioboss.SyncBoss() as boss:
    # begin repair
    (failed,) = boss.find_jobs("transfers", state="failed", singleton_key="ann")
    print("blocked:", boss.get_blocked_keys("transfers"), "by", failed.data)

    boss.pause("transfers")  # so that no worker takes the job before its data is right
    boss.retry("transfers", failed.id)
    boss.update_job("transfers", failed.id, data={**failed.data, "amount": "15"})
    boss.resume_queue("transfers")
    # end repair

    while jobs := boss.fetch("transfers"):
        print("runs:", *(job.data for job in jobs))
        boss.complete("transfers", jobs)

    # begin copy
    (copy,) = boss.find_jobs("transfers-failed", source_id=failed.id)
    boss.delete_job("transfers-failed", copy.id)
    # end copy
    print("dead letters:", boss.get_queue_size("transfers-failed"))
