// graphile-worker. Settings: concurrency; local (localQueue.size, off by default), delay (milliseconds for which
// completions and failures are collected, off by default).
import fs from "node:fs";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { QUEUE, main } from "./common.mjs";

const manifest = new URL("./node_modules/graphile-worker/package.json", import.meta.url);
const { version } = JSON.parse(fs.readFileSync(manifest));
const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(level, message);
});

main((dsn, settings) => {
  let utils;
  return {
    async setUp() {
      utils = await makeWorkerUtils({ connectionString: dsn, logger });
      await utils.migrate();
      // Ended jobs leave the table.
      return { version, pending_sql: "select count(*) from graphile_worker._private_jobs" };
    },
    async fill(n) {
      const db = new pg.Client(dsn);
      await db.connect();
      await db.query(
        `select count(*) from graphile_worker.add_jobs((
           select array_agg(json_populate_record(null::graphile_worker.job_spec, json_build_object(
             'identifier', $1::text, 'payload', json_build_object('i', i, 't', 0, 'due', 0))))
           from generate_series(1, $2::int) i))`,
        [QUEUE, n],
      );
      await db.end();
    },
    async openProducer(connections) {
      utils = await makeWorkerUtils({ connectionString: dsn, maxPoolSize: connections, logger });
    },
    send: (data) => utils.addJob(QUEUE, data),
    sendMany: (rows) => utils.addJobs(rows.map((payload) => ({ identifier: QUEUE, payload }))),
    async work(hit) {
      const { concurrency, local, delay } = settings;
      const worker = {
        connectionString: dsn,
        concurrentJobs: concurrency,
        // Its documentation recommends 10, or two more than concurrentJobs. Two workers must fit into max_connections.
        maxPoolSize: Math.max(10, Math.min(concurrency + 2, 40)),
        logger,
      };
      if (local !== undefined) worker.localQueue = { size: local };
      if (delay !== undefined) worker.completeJobBatchDelay = worker.failJobBatchDelay = delay;
      await run({ preset: { worker }, noHandleSignals: true, crontab: "", taskList: { [QUEUE]: hit } });
    },
  };
});
