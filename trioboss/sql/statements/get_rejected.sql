-- The first `limit` rows of a load that cannot be jobs, and why.
SELECT position, problem, job FROM trioboss.rejected WHERE load = :load::text ORDER BY position LIMIT :limit::bigint;
