import psycopg

import trioboss

with trioboss.SyncBoss() as boss, psycopg.connect(boss.dsn, autocommit=True) as connection:
    boss.create_queue("sql-orders")
    connection.execute("DROP TABLE IF EXISTS sql_order")
    connection.execute("CREATE TABLE sql_order (number int)")
    connection.execute(
        """
        -- begin insert
        INSERT INTO trioboss.job (name, data, priority, start_after, retry_limit)
        VALUES ('sql-orders', '{"number": 1}', 5, now() + interval '1 hour', 4)
        -- end insert
        """
    )
    connection.execute(
        """
        -- begin trigger
        CREATE OR REPLACE FUNCTION enqueue_order() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO trioboss.job (name, data)
            VALUES ('sql-orders', jsonb_build_object('number', NEW.number));
            RETURN NEW;
        END $$;

        CREATE TRIGGER enqueue_order AFTER INSERT ON sql_order
            FOR EACH ROW EXECUTE FUNCTION enqueue_order();
        -- end trigger
        """
    )
    connection.execute("INSERT INTO sql_order VALUES (2)")
    for job in boss.find_jobs("sql-orders"):
        print(job.data, job.priority, job.readiness)
