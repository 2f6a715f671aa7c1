-- begin insert
INSERT INTO trioboss.job (name, data) VALUES ('email', '{"to": "ann@example.com"}') RETURNING id;
-- end insert

-- begin options
INSERT INTO trioboss.job (name, data, priority, start_after, singleton_key, retry_limit, expire_in)
VALUES ('email', '{"to": "bob@example.com"}', 10, now() + interval '1 hour', 'customer-7', 5, interval '1 minute');
-- end options

-- begin trigger
CREATE TABLE customer (id bigint PRIMARY KEY, address text NOT NULL);

CREATE FUNCTION welcome() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO trioboss.job (name, data, singleton_key)
    VALUES ('email', jsonb_build_object('to', NEW.address), 'customer-' || NEW.id);
    RETURN NEW;
END $$;

CREATE TRIGGER welcome AFTER INSERT ON customer FOR EACH ROW EXECUTE FUNCTION welcome();

INSERT INTO customer VALUES (8, 'eve@example.com');
-- end trigger

-- begin queue
SELECT trioboss.create_queue('reports', '{"policy": "short", "retry_limit": 5, "expire_in": 60}');

SELECT trioboss.delete_queue('reports');
-- end queue
