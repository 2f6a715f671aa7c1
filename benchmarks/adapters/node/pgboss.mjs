// pg-boss. Settings: notify (LISTEN/NOTIFY for the queue), batch (batchSize), local (localConcurrency).
import { createRequire } from "node:module";
import pg from "pg";
import { PgBoss } from "pg-boss";
import { QUEUE, main } from "./common.mjs";

const { version } = createRequire(import.meta.url)("pg-boss/package.json");

const open = async (options) => {
  const boss = new PgBoss(options);
  boss.on("error", (error) => console.error(error));
  await boss.start();
  return boss;
};

main((dsn, settings) => {
  const notify = Boolean(settings.notify);
  // A client that only sends: no maintenance, no cron.
  const openClient = (max) =>
    open({ connectionString: dsn, max, supervise: false, schedule: false, migrate: false });
  let boss;
  return {
    async setUp() {
      boss = await open({ connectionString: dsn, max: 2 });
      await boss.createQueue(QUEUE, { notify });
      return { version, pending_sql: "select count(*) from pgboss.job where state < 'completed'" };
    },
    // Copies of a sent job, so that every column has the value that pg-boss gives it.
    async fill(n) {
      boss = await openClient(2);
      const id = await boss.send(QUEUE, { i: 0, t: 0, due: 0 });
      const db = new pg.Client(dsn);
      await db.connect();
      const { rows } = await db.query(`
        select string_agg(quote_ident(column_name), ', ') as columns from information_schema.columns
        where table_schema = 'pgboss' and table_name = 'job' and is_generated = 'NEVER' and column_name <> 'id'`);
      const { columns } = rows[0];
      await db.query(
        `insert into pgboss.job (id, ${columns})
         select gen_random_uuid(), ${columns} from pgboss.job, generate_series(1, $2::int) where id = $1`,
        [id, n - 1],
      );
      await db.end();
    },
    async openProducer(connections) {
      boss = await openClient(connections);
    },
    send: (data) => boss.send(QUEUE, data),
    sendMany: (rows) => boss.insert(QUEUE, rows.map((data) => ({ data }))),
    async work(hit) {
      boss = await open({ connectionString: dsn, useListenNotify: notify });
      const options = {
        pollingIntervalSeconds: 0.5,
        batchSize: settings.batch,
        localConcurrency: settings.local,
        burstWhenBatchFull: true,
      };
      await boss.work(QUEUE, options, async (jobs) => {
        for (const job of jobs) hit(job.data);
      });
    },
  };
});
