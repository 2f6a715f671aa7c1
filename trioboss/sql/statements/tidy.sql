-- Retention of what is small: throttle slots that are over, old ticks (the last of each schedule stays), marks and
-- watchers of the dead, and readers of history that are done.
WITH slots AS (
    DELETE FROM trioboss.throttle WHERE until < now() - interval '1 hour'
), ticks AS (
    DELETE FROM trioboss.tick t
    WHERE t.due < now() - interval '7 days'
      AND EXISTS (SELECT FROM trioboss.tick n WHERE n.name = t.name AND n.key = t.key AND n.due > t.due)
), marks AS (
    DELETE FROM trioboss.sleeper s WHERE NOT EXISTS (SELECT FROM trioboss.worker w WHERE w.id = s.worker)
), watchers AS (
    DELETE FROM trioboss.watcher WHERE until < now()
), readers AS (
    DELETE FROM trioboss.reader WHERE until < now() - interval '1 day'
)
SELECT trioboss.add_days((now() AT TIME ZONE 'UTC')::date, 7);
