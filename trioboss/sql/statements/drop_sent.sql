-- Remove jobs that this transaction has sent.
SELECT trioboss.drop_sent(:queue::text, :ids::uuid[]);
