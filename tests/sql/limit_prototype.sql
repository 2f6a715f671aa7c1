-- A prototype, not a feature: at most `places` jobs of a queue are ready or active at a time. It shows that a limit is
-- one more backlog of the same mechanism (docs/decisions/0003): no statement for keys is changed, none is even aware of
-- it.
--
-- A job that would become ready without a place waits in the backlog 'limit:NAME' instead and leaves a check; a job
-- that leaves gives its place back and leaves a check for each queue of the limit. These checks are filed under the
-- limit, not under the queue, so claims that answer checks of keys do not meet them. Under a keyed policy a job waits
-- for its key first, and keeps it while it waits for the limit.
CREATE TABLE trioboss.limited_queue (queue text COLLATE "C" PRIMARY KEY, backlog text COLLATE "C" NOT NULL, places int NOT NULL);

CREATE TABLE trioboss.limit_place (
    backlog  text COLLATE "C" NOT NULL,
    place    int NOT NULL,
    job_id   uuid NOT NULL UNIQUE,
    PRIMARY KEY (backlog, place)                     -- a place is taken once
);

CREATE FUNCTION trioboss.wait_for_limit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    l trioboss.limited_queue;
BEGIN
    SELECT * INTO l FROM trioboss.limited_queue WHERE queue = NEW.queue;
    IF TG_OP = 'INSERT' THEN
        UPDATE trioboss.live_job SET readiness = 'ready' WHERE queue = l.queue AND id = NEW.id;
    ELSIF l.queue IS NOT NULL AND NOT EXISTS (SELECT FROM trioboss.limit_place WHERE job_id = NEW.id) THEN
        NEW.readiness := 'waiting';
        NEW.backlog := l.backlog;
        INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog) VALUES (NEW.seq, NEW.priority, NEW.backlog, NEW.queue);
    END IF;
    RETURN NEW;
END $$;

-- After follow_readiness, in the order of names.
CREATE TRIGGER wait_for_limit BEFORE UPDATE OF readiness ON trioboss.live_job FOR EACH ROW
WHEN (NEW.readiness = 'ready') EXECUTE FUNCTION trioboss.wait_for_limit();

-- A public limit would be part of send.sql, where the backlog of the key is.
CREATE TRIGGER join_limit AFTER INSERT ON trioboss.live_job FOR EACH ROW
WHEN (NEW.readiness = 'ready') EXECUTE FUNCTION trioboss.wait_for_limit();

CREATE FUNCTION trioboss.leave_limit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    left_backlog text;
BEGIN
    DELETE FROM trioboss.limit_place WHERE job_id = OLD.id RETURNING backlog INTO left_backlog;
    IF FOUND THEN
        INSERT INTO trioboss.backlog_check (queue, backlog)
        SELECT backlog, queue FROM trioboss.limited_queue WHERE backlog = left_backlog;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER limit_deleted AFTER DELETE ON trioboss.live_job FOR EACH ROW
WHEN (OLD.readiness IN ('ready', 'active')) EXECUTE FUNCTION trioboss.leave_limit();

CREATE TRIGGER limit_left AFTER UPDATE OF readiness ON trioboss.live_job FOR EACH ROW
WHEN (OLD.readiness IN ('ready', 'active') AND NEW.readiness NOT IN ('ready', 'active'))
EXECUTE FUNCTION trioboss.leave_limit();

-- Answer the checks of a limit: as many of its first jobs become ready as there are places, each with a place. To be
-- called under the lock of admission. A place whose return is not committed is still taken: nobody waits for an open
-- transaction. The last check stays while a first job is just being changed, or more jobs may wait than were admitted.
CREATE FUNCTION trioboss.admit_limited(wanted_queue text, most int) RETURNS bigint LANGUAGE sql AS $$
    WITH checked AS MATERIALIZED (
        SELECT c.ctid AS row, l.backlog, l.places
        FROM trioboss.limited_queue l JOIN trioboss.backlog_check c ON c.queue = l.backlog AND c.backlog = l.queue
        WHERE l.queue = wanted_queue LIMIT 1000
    ), free AS MATERIALIZED (
        SELECT l.backlog, p.place, row_number() OVER (ORDER BY p.place) AS number
        FROM (SELECT DISTINCT backlog, places FROM checked) l, generate_series(1, l.places) AS p (place)
        WHERE NOT EXISTS (SELECT FROM trioboss.limit_place t WHERE t.backlog = l.backlog AND t.place = p.place)
        LIMIT most
    ), head AS MATERIALIZED (
        SELECT ctid AS row, id FROM trioboss.live_job
        WHERE queue = wanted_queue AND readiness = 'waiting' AND backlog = (SELECT backlog FROM checked LIMIT 1)
        ORDER BY rank, seq LIMIT (SELECT count(*) FROM free)
    ), locked AS MATERIALIZED (
        SELECT j.id, row_number() OVER () AS number
        FROM head h, LATERAL (SELECT id FROM trioboss.live_job
                              WHERE queue = wanted_queue AND id = h.id AND readiness = 'waiting' FOR UPDATE SKIP LOCKED) j
    ), placed AS (
        INSERT INTO trioboss.limit_place (backlog, place, job_id)
        SELECT f.backlog, f.place, l.id FROM free f JOIN locked l USING (number)
        ON CONFLICT DO NOTHING                       -- another queue of this limit was faster
        RETURNING job_id
    ), admitted AS (
        UPDATE trioboss.live_job SET readiness = 'ready', backlog = owner
        WHERE queue = wanted_queue AND id IN (SELECT job_id FROM placed)
        RETURNING id
    ), answered AS (
        DELETE FROM trioboss.backlog_check WHERE ctid = ANY (ARRAY (SELECT row FROM checked))
    ), kept AS (
        INSERT INTO trioboss.backlog_check (queue, backlog)
        SELECT backlog, wanted_queue FROM checked
        WHERE (SELECT count(*) FROM free) > 0 AND ((SELECT count(*) FROM head) = (SELECT count(*) FROM free)
                                                   OR (SELECT count(*) FROM placed) < (SELECT count(*) FROM head))
        LIMIT 1
    )
    SELECT count(*) FROM admitted
$$;
