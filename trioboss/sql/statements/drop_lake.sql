-- Forget the lakes at an address: retention no longer waits for them. Returns how many there were.
WITH gone AS (
    DELETE FROM trioboss.lake WHERE address = :address::text RETURNING id
)
SELECT count(*) FROM gone;
