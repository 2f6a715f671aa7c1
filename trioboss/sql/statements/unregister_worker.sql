-- A worker has ended: remove its idle markers and its row. If it leaves leases that it could not settle, because
-- another transaction has locked the jobs, its row stays with a mark until rescue_leases.sql has released them. A lease
-- of a worker without a row is lost, which would spend a retry.
WITH markers AS (
    DELETE FROM trioboss.idle_dispatcher WHERE worker = :worker::uuid
), leases AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM trioboss.live_job WHERE worker = :worker AND readiness = 'active') AS left_behind
), marked AS (
    UPDATE trioboss.worker w SET stopped = true FROM leases l WHERE w.id = :worker AND l.left_behind
)
DELETE FROM trioboss.worker w USING leases l WHERE w.id = :worker AND NOT l.left_behind;
