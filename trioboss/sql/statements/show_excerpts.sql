-- Of some jobs of a queue, live or ended between two times, for their lines in a list: the class and the message of the
-- error, when a live one failed, and the data as text where it is small. Data of up to `bytes` as it is stored counts
-- as small, if as text it is no more than ten times that.
SELECT j.id, left(j.error ->> 'name', 200) AS error, left(j.error ->> 'message', 200) AS message, j.failed_on, j.data
FROM (
    SELECT j.id, j.notes -> 'error' AS error, (j.notes ->> 'failed_on')::timestamptz AS failed_on,
           CASE WHEN pg_column_size(j.data) <= :bytes::int AND octet_length(j.data::text) <= 10 * :bytes THEN j.data::text END AS data
    FROM trioboss.live_job j WHERE j.queue = :queue::text AND j.id = ANY (:ids::uuid[])
    UNION ALL
    SELECT a.id, CASE WHEN a.outcome <> 'completed' THEN a.output END, NULL,
           CASE WHEN pg_column_size(a.data) <= :bytes AND octet_length(a.data::text) <= 10 * :bytes THEN a.data::text END
    FROM trioboss.archive a
    WHERE a.queue = :queue AND a.id = ANY (:ids) AND a.completed_on >= :first::timestamptz AND a.completed_on <= :last::timestamptz
) j;
