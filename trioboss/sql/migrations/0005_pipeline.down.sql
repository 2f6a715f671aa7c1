DO $$
DECLARE
    stage text;
BEGIN
    FOR stage IN SELECT table_name FROM trioboss.stage LOOP
        PERFORM trioboss.drop_stage(stage);
    END LOOP;
END $$;
DROP FUNCTION trioboss.gather_stage(text, text, bigint);
DROP FUNCTION trioboss.drop_stage(text);
DROP FUNCTION trioboss.add_stage(text, text);
DROP TABLE trioboss.stage_row;
DROP TABLE trioboss.stage;
DROP TABLE trioboss.rejected;
DROP TABLE trioboss.load;
DROP FUNCTION trioboss.register_read(uuid, text, date, date, double precision, pg_snapshot);
DROP TABLE trioboss.reader;
DROP TABLE trioboss.deleted_history;
DROP TABLE trioboss.history_audit;
DROP DOMAIN trioboss.numbers;
DROP TABLE trioboss.lake;
DROP INDEX trioboss.attempt_xid;
DROP INDEX trioboss.archive_xid;
