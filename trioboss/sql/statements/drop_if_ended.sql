-- The same id twice is one job, also when the first has ended: in the transaction that sent jobs with given ids,
-- remove those for which a job of the same id is in the archive. None is missed: until it ended it conflicted with the
-- new one, and by now its end is visible. Returns the ids removed.
SELECT trioboss.drop_if_ended(:queue::text, :ids::uuid[]);
