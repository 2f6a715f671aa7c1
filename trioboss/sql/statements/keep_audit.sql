-- Record an action of a person, in the transaction of the action. Returns the id of the row. With an `id`, add the next
-- chunk of an action to its row: the id comes from a form, so only a row of the same person, action, queue and filter
-- is changed.
WITH added AS (
    UPDATE trioboss.audit a
    SET requested = a.requested + coalesce(:requested::bigint, 0), affected = a.affected + coalesce(:affected::bigint, 0)
    WHERE a.id = :id::uuid AND a.who = :who::text AND a.action = :action::text
      AND a.queue IS NOT DISTINCT FROM :queue::text AND a.filter IS NOT DISTINCT FROM :filter::jsonb
    RETURNING a.id
), made AS (
    INSERT INTO trioboss.audit (id, who, action, queue, filter, requested, affected)
    SELECT trioboss.make_id(), :who, :action, :queue, :filter, coalesce(:requested, 0), coalesce(:affected, 0)
    WHERE :id IS NULL
    RETURNING id
)
SELECT id FROM added UNION ALL SELECT id FROM made;
