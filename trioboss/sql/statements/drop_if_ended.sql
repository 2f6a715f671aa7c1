-- The same id twice is one job, also when the first has ended: in the transaction that sent jobs with given ids,
-- take back those whose namesake is in the archive. It cannot slip by: until it ended it was in the way of the new
-- one, and by now its end is visible. Returns the ids taken back.
SELECT trioboss.drop_if_ended(:queue::text, :ids::uuid[]);
