DROP TABLE trioboss.queue;
DROP SEQUENCE trioboss.queue_revision;
DROP TABLE trioboss.lock_seed, trioboss.version;
DROP FUNCTION trioboss.lock_number(text, bigint), trioboss.notify(text), trioboss.make_id(), trioboss.refuse_dead_letter_cycle(),
              trioboss.renew_revision(),
              trioboss.notify_queues_changed();
DROP TYPE trioboss.policy;
DROP DOMAIN trioboss.instant, trioboss.seconds, trioboss.fraction, trioboss.multiplier, trioboss.amount, trioboss.counter, trioboss.histogram, trioboss.key;
-- A schema that holds anything else stays, and so does one that somebody else made.
DO $$ BEGIN
    IF obj_description(to_regnamespace('"trioboss"'), 'pg_namespace') = 'made by trioboss' THEN
        DROP SCHEMA "trioboss";
    END IF;
EXCEPTION WHEN dependent_objects_still_exist OR insufficient_privilege THEN NULL;
END $$;
