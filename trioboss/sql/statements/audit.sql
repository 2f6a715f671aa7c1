-- Write down what somebody did, in the transaction that did it; with the id of an earlier row, add to that one. Returns its id.
INSERT INTO trioboss.audit AS a (id, who, action, queue, filter, requested, affected)
VALUES (coalesce(:id::uuid, trioboss.make_id()), :who::text, :action::text, :queue::text, :filter::jsonb, coalesce(:requested::bigint, 0),
        coalesce(:affected::bigint, 0))
ON CONFLICT (id) DO UPDATE SET requested = a.requested + excluded.requested, affected = a.affected + excluded.affected
RETURNING a.id;
