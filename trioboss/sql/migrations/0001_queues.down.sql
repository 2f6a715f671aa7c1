DROP TABLE trioboss.queue;
DROP TABLE trioboss.version;
DROP FUNCTION trioboss.refuse_dead_letter_circle();
DROP FUNCTION trioboss.announce_queues();
DROP DOMAIN trioboss.instant, trioboss.span, trioboss.share;
DROP SCHEMA "trioboss";
