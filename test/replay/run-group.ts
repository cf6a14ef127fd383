/**
 * Sends the exchanges of a group through a running gateway, one after another, and returns the observable results of
 * each.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { recordOf } from '../../src/ledger/journal/record-values.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { type Exchange, type Step, startWireServer } from '../wires/wire-server.ts';
import { restartChance, ScriptedClock } from './scripted-machine.ts';

export interface ReplayExchange {
  /** Unique in its group. */
  name: string;
  /** The path of the operation, without `/api/v1`. */
  path: string;
  body: JsonObject;
  headers?: Record<string, string>;
  /** The upstream's steps for each request of this exchange. */
  upstream(exchange: Exchange, seen: Seen): Step[];
  /** The client disconnects as soon as the promise resolves. */
  leave?: (seen: Seen) => Promise<unknown>;
  /** The name of an API key that `prepare` made; by default one with a strict limit that is never reached. */
  key?: string;
}

/** The observable state of an exchange in progress. */
export interface Seen {
  /** The requests that reached the upstream. */
  sent(): readonly Exchange[];
  /** The text that the client has read. */
  read(): string;
  /** Resolves when the client has disconnected, or has its whole answer. */
  left: Promise<void>;
}

/** Exchanges with one configuration. Each group has a gateway, a store and a clock of its own. */
export interface ReplayGroup {
  name: string;
  /** The content of gateway.yaml. */
  file(upstreamUrl: string): object;
  exchanges: readonly ReplayExchange[];
  /** Scripted time between exchanges, in whole seconds; by default long enough to forget earlier failures. */
  between_ms?: number;
  /** Makes keys and guardrails before the first exchange. Its result: the API key of each name that exchanges have as `key`. */
  prepare?(gateway: TestGateway): Promise<Record<string, string>>;
}

/** All observable results of one exchange. */
export interface Observed {
  name: string;
  answer: { status: number; headers: Record<string, string>; body: string; broke?: true };
  /** The requests that reached the upstream, in order. */
  sent: { method: string; path: string; headers: Record<string, string>; body: string }[];
  /** The stored generation records, with the charge of each budget. */
  records: object[];
}

/** The default time between two exchanges: endpoints that failed in one are tried again in the next. */
const BETWEEN_MS = 600_000;
/** Turns of the event loop after which everything in this process has read what was written to it. */
const QUIET_TURNS = 30;
/** Far more than all exchanges of a group cost and hold together. */
const LIMIT_USD = 1_000_000;
const NOT_SHOWN = ['date', 'connection', 'keep-alive'];
const NOT_SENT = ['host', 'connection'];

/** Waits until what was written so far has been read. */
export async function quiet(): Promise<void> {
  for (let turns = 0; turns < QUIET_TURNS; turns += 1) await turn();
}

export class GroupRun {
  readonly clock = new ScriptedClock();

  /** A step in which the scripted time passes, once everything sent before it has been read. */
  readonly pass = (ms: number): Step => ({
    run: async () => {
      await quiet();
      this.clock.pass(ms);
    },
  });
}

function pickHeaders(headers: Iterable<[string, string]>, leftOut: readonly string[]): Record<string, string> {
  const all = [...headers].filter(([name]) => !leftOut.includes(name));
  return Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A signature covers the host, and thereby a port that differs in each run. */
function sentOf({ method, path, headers, body }: Exchange): Observed['sent'][number] {
  const shown = pickHeaders(Object.entries(headers), NOT_SENT);
  const { authorization } = shown;
  if (authorization?.startsWith('AWS4')) shown['authorization'] = authorization.replace(/Signature=\w+/, 'Signature=…');
  return { method, path, headers: shown, body };
}

/** An exchange in progress. */
class OpenExchange implements Seen {
  readonly exchange: ReplayExchange;
  readonly #upstream: readonly Exchange[];
  readonly #first: number;
  readonly #left = Promise.withResolvers<void>();
  #text = '';

  constructor(exchange: ReplayExchange, upstream: readonly Exchange[]) {
    this.exchange = exchange;
    this.#upstream = upstream;
    this.#first = upstream.length;
  }

  readonly left: Promise<void> = this.#left.promise;
  readonly sent = (): readonly Exchange[] => this.#upstream.slice(this.#first);
  readonly read = (): string => this.#text;

  /** Sends it and reads the answer until it ends, or its client disconnects. */
  async send(gateway: TestGateway, key: string, requestId: string): Promise<Observed['answer']> {
    const { path, body, headers, leave } = this.exchange;
    const leaving = new AbortController();
    void leave?.(this).then(() => leaving.abort());
    let shown: Pick<Observed['answer'], 'status' | 'headers'> = { status: 0, headers: {} };
    try {
      const response = await fetch(`${gateway.base_url}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'accept-encoding': 'identity',
          'user-agent': 'replay',
          'x-request-id': requestId,
          'x-gateway-experimental-metadata': 'enabled',
          ...headers,
        },
        body: JSON.stringify(body),
        signal: leaving.signal,
      });
      shown = { status: response.status, headers: pickHeaders(response.headers, NOT_SHOWN) };
      const decoder = new TextDecoder();
      for await (const bytes of response.body ?? []) this.#text += decoder.decode(bytes, { stream: true });
      return { ...shown, body: this.#text };
    } catch {
      return { ...shown, body: this.#text, broke: true };
    } finally {
      this.#left.resolve();
    }
  }
}

/** A key with holds, so that the highest cost of an attempt is part of its record. */
async function limitedKey(gateway: TestGateway, limit: number): Promise<string> {
  const headers = { authorization: `Bearer ${gateway.management_key}` };
  const response = await gateway.call('POST', '/keys', { name: 'replay', limit }, headers);
  if (response.status !== 201) throw new Error(`no key could be made: ${response.status} ${await response.text()}`);
  return ((await response.json()) as { key: string }).key;
}

/** `gen-<second>-…`: the second is unique to an exchange, or to one of its requests. */
const secondOf = (id: string): number => Number(id.split('-')[1]);

interface Stored {
  records: { second: number; shown: object }[];
  /** The state of the ledger after all exchanges. */
  sums: object;
}

function readStore(dataDir: string): Stored {
  const store = new DatabaseSync(join(dataDir, 'gateway.db'), { readOnly: true });
  try {
    const rows = store.prepare('SELECT * FROM ledger_generations ORDER BY id').all();
    const records = rows.map(({ id, node_id: _, record, charges, ...row }) => ({
      second: secondOf(String(id)),
      shown: { ...row, charges: JSON.parse(String(charges)), record: recordOf(String(record)) },
    }));
    const spent = store
      .prepare(
        `SELECT w.budget_id, w.window_start, w.spent + COALESCE(SUM(l.settled), 0) AS spent FROM ledger_windows AS w LEFT JOIN ledger_leases AS l ON l.budget_id = w.budget_id AND l.window_start = w.window_start GROUP BY w.budget_id, w.window_start, w.spent ORDER BY 1, 2`,
      )
      .all();
    const adjusted = store.prepare('SELECT budget_id, amount, reason FROM ledger_adjustments ORDER BY id').all();
    return { records, sums: { spent, adjusted } };
  } finally {
    store.close();
  }
}

/** Counters of events; times and sizes of the process differ in each run. */
function countersOf(metrics: string): string[] {
  const lines = metrics.split('\n').filter((line) => /^\w+(?:\{.*\})? \S+$/.test(line));
  return lines.filter((line) => /^gateway_\w+_total\b|_count\b/.test(line)).sort();
}

/** Runs a group, or the selected exchanges of it, and returns the results once all of them are stored. */
export async function runGroup(
  make: (run: GroupRun) => ReplayGroup,
  isWanted: (name: string) => boolean,
): Promise<Observed[]> {
  restartChance();
  const run = new GroupRun();
  const group = make(run);
  const wanted = group.exchanges
    .map((exchange, index) => ({ exchange, index, name: `${group.name}/${exchange.name}` }))
    .filter(({ name }) => isWanted(name));
  if (wanted.length === 0) return [];
  const home = mkdtempSync(join(tmpdir(), 'gateway-replay-'));
  const dataDir = join(home, 'data');
  let open: OpenExchange | undefined;
  const upstream = await startWireServer((exchange) => open?.exchange.upstream(exchange, open) ?? ['END']);
  try {
    const gateway = await startGateway({
      yaml: JSON.stringify(group.file(upstream.url)),
      data_dir: dataDir,
      clock: run.clock,
      environment: {
        GATEWAY_SECRET: createHash('sha256').update('replay').digest('hex'),
        // Nothing outside this machine is reached: there is no proxy at this address.
        HTTP_PROXY: 'http://127.0.0.1:9',
        HTTPS_PROXY: 'http://127.0.0.1:9',
        NO_PROXY: '127.0.0.1',
      },
    });
    const observed: (Observed & { from_second: number; to_second: number })[] = [];
    let counters: string[];
    try {
      const keys = (await group.prepare?.(gateway)) ?? {};
      const usual = await limitedKey(gateway, LIMIT_USD);
      const { between_ms = BETWEEN_MS } = group;
      for (const { exchange, index, name } of wanted) {
        run.clock.moveTo((index + 1) * between_ms);
        const fromSecond = Math.floor(run.clock.nowMs() / 1_000);
        open = new OpenExchange(exchange, upstream.exchanges);
        const key = exchange.key === undefined ? usual : keys[exchange.key]!;
        const answer = await open.send(gateway, key, `replay-${index}`);
        await quiet();
        await gateway.gateway.app.server.running.idle();
        const toSecond = fromSecond + between_ms / 1_000 - 1;
        observed.push({
          name,
          answer,
          sent: open.sent().map(sentOf),
          records: [],
          from_second: fromSecond,
          to_second: toSecond,
        });
      }
      counters = countersOf(await (await fetch(`${gateway.url}/metrics`)).text());
    } finally {
      await gateway.stop();
    }
    const { records, sums } = readStore(dataDir);
    const lines = observed.map(({ from_second, to_second, ...line }) => ({
      ...line,
      records: records.filter(({ second }) => second >= from_second && second <= to_second).map(({ shown }) => shown),
    }));
    const end: Observed = {
      name: `${group.name}/sums`,
      answer: { status: 0, headers: {}, body: counters.join('\n') },
      sent: [],
      records: [sums],
    };
    return [...lines, end];
  } finally {
    await upstream.stop();
    rmSync(home, { recursive: true, force: true });
  }
}
