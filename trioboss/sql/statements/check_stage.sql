-- Mark the rows of a stage that name a dead letter queue which does not exist. Returns how many rows there are, and how
-- many of them have a problem.
WITH lost AS (
    UPDATE trioboss.stage_row s
    SET problem = 'dead_letter: queue ' || (s.options ->> 'dead_letter') || ' does not exist',
        data = jsonb_build_object('data', s.data, 'singleton_key', s.singleton_key, 'options', s.options)
    WHERE s.problem IS NULL AND s.options ? 'dead_letter'
      AND NOT EXISTS (SELECT FROM trioboss.queue q WHERE q.name = s.options ->> 'dead_letter')
    RETURNING s.position
)
SELECT count(*), count(problem) + (SELECT count(*) FROM lost) FROM trioboss.stage_row;
