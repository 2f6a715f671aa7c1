"""Helpers that the tests of erasures share."""

from trioboss.pipeline.database import Database


def send_and_fail(boss, queue, data, **options):
    """A job that fails for good, and its dead letter job, which completes."""
    id = boss.send(queue, data, retry_limit=0, **options)
    (job,) = boss.fetch(queue)
    boss.fail(queue, job, {"message": f"no {data}"})
    (copy,) = boss.fetch("dead")
    boss.complete("dead", copy)
    return str(id), str(copy.id)


def before_each_deletion(monkeypatch, act):
    """Let something happen between a search and the deletion after it."""
    run = Database.run

    def acting(database, name, **values):
        if name == "erase_jobs":
            act()
        return run(database, name, **values)

    monkeypatch.setattr(Database, "run", acting)
