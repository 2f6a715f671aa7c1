-- The end of a statement that releases a stage: the checks of the backlogs that its jobs join, and how many jobs there
-- are.
    RETURNING seq, priority, backlog, readiness
), joined AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT min(seq), priority, :queue, backlog FROM released WHERE readiness = 'waiting' GROUP BY backlog, priority
)
SELECT count(*) FROM released;
