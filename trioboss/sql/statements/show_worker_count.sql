-- How many workers are not known to be gone, up to `most`.
SELECT count(*) FROM (SELECT FROM trioboss.worker w WHERE w.gone_since IS NULL LIMIT :most::bigint) w;
