// The protocol of ../base.py for Node: the same roles, pacing, clock and recorded values.
import readline from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

export const QUEUE = "bench";

// CLOCK_MONOTONIC in seconds. performance.timeOrigin + performance.now() differs by milliseconds between processes.
const now = () => {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds + nanoseconds / 1e9;
};
const cpuSeconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};
// The line is written when the promise resolves: process.exit would cut off the rest of a long line.
const emit = (event, values = {}) =>
  new Promise((resolve) => process.stdout.write(JSON.stringify({ event, ...values }) + "\n", resolve));

async function atFullSpeed(send, senders, seconds) {
  const sent = { n: 0, begin: now(), end: 0, late: 0 };
  const loop = async () => {
    for (let t = now(); t < sent.begin + seconds; t = now()) await send({ i: ++sent.n, t, due: 0 });
  };
  await Promise.all(Array.from({ length: senders }, loop));
  return { ...sent, end: now() };
}

async function inBulk(sendMany, n, chunk) {
  const rows = Array.from({ length: n }, (_, i) => ({ i, t: 0, due: 0 }));
  await sendMany(rows.slice(0, Math.min(1000, n)));
  const begin = now();
  const size = chunk || n;
  for (let first = 0; first < n; first += size) await sendMany(rows.slice(first, first + size));
  return { n, begin, end: now(), late: 0 };
}

async function atRate(send, n, rate) {
  const begin = now();
  const sends = [];
  let late = 0;
  for (let i = 0; i < n; i++) {
    const due = begin + i / rate;
    // A timer never fires early, and its resolution is a millisecond.
    if (due - now() > 0.0005) await sleep((due - now()) * 1000);
    const t = now();
    late = Math.max(late, t - due);
    sends.push(send({ i, t, due }));
  }
  await Promise.all(sends);
  return { n, begin, end: now(), late };
}

async function produce(queue, spec, lines) {
  await queue.openProducer(spec.senders);
  for (let i = 0; i < (spec.warmup ?? 0); i++) await queue.send({ i: -1 - i, t: 0, due: 0 });
  await emit("ready");
  if ((await lines.next()).done) return;
  const cpu = cpuSeconds();
  const sent =
    spec.mode === "speed"
      ? await atFullSpeed(queue.send, spec.senders, spec.seconds)
      : spec.mode === "bulk"
        ? await inBulk(queue.sendMany, spec.n, spec.chunk ?? 0)
        : await atRate(queue.send, spec.n, spec.rate);
  await emit("produced", { cpu: cpuSeconds() - cpu, ...sent });
  await lines.next(); // until the harness has read its meters
}

async function work(queue, spec, lines) {
  if (spec.hold) {
    await emit("up");
    await lines.next();
  }
  const entered = [], called = [], due = [];
  const hit = (data) => {
    entered.push(now());
    called.push(data.t);
    due.push(data.due);
  };
  if (spec.progress) {
    let reported = -1;
    setInterval(() => {
      if (entered.length !== reported) emit("progress", { n: (reported = entered.length) });
    }, 20);
  }
  await queue.work(hit);
  await emit("ready");
  for await (const _ of lines) await emit("recorded", { cpu: cpuSeconds(), entered, called, due });
}

export async function main(make) {
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const spec = JSON.parse((await lines.next()).value);
  const queue = make(spec.dsn, spec.settings ?? {});
  if (spec.role === "setup") await emit("done", await queue.setUp());
  else if (spec.role === "fill") {
    await queue.fill(spec.n);
    await emit("done");
  } else if (spec.role === "produce") await produce(queue, spec, lines);
  else await work(queue, spec, lines);
  process.exit(0);
}
