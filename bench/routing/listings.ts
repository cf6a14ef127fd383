import { mkdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, Program } from '../process.ts';
import { modelName } from './large-catalog.ts';

const ROOT = join(import.meta.dirname, '../..');
const MANAGEMENT_KEY = 'bench-management-key-0123456789abcdef';

/** One query, sent many times over one connection. */
export interface ListingRow {
  path: string;
  status: number;
  bytes: number;
  /** The first answer after the start of the process. */
  first_ms: number;
  /** CPU time of the gateway for an answer, which other work on the machine does not change. */
  cpu_ms: number;
  p50_ms: number;
  p99_ms: number;
}

/** The gateway with the large catalog, and the figures of its catalog's answers. */
export interface Listings {
  ready_ms: number;
  idle_bytes: number;
  rows: ListingRow[];
}

interface Answer {
  status: number;
  bytes: number;
  etag: string | undefined;
  body: string;
  took_ms: number;
}

function ask(
  agent: Agent,
  port: number,
  path: string,
  more: { body?: string; etag?: string; key?: string } = {},
): Promise<Answer> {
  const { body, etag, key } = more;
  const headers = {
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    ...(etag === undefined ? {} : { 'if-none-match': etag }),
  };
  const beganMs = performance.now();
  return new Promise((resolve, reject) => {
    const options = { agent, port, host: '127.0.0.1', path, method: body === undefined ? 'GET' : 'POST', headers };
    const call = request(options, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const tookMs = performance.now() - beganMs;
        const whole = Buffer.concat(parts);
        const { statusCode: status = 0, headers: answered } = response;
        resolve({ status, bytes: whole.length, etag: answered.etag, body: whole.toString(), took_ms: tookMs });
      });
    });
    call.on('error', reject);
    call.end(body);
  });
}

const MODEL = modelName(0);
const QUERIES: readonly { path: string; is_known?: true; with_key?: true }[] = [
  { path: '/models' },
  { path: '/models', with_key: true },
  { path: '/models', is_known: true },
  { path: '/models?output_modalities=all' },
  { path: '/models?supported_parameters=tools,response_format' },
  { path: '/models?category=programming' },
  { path: '/models?use_rss=true' },
  { path: '/models?use_rss=true&use_rss_chat_links=true' },
  { path: '/models/count' },
  { path: '/models/user', with_key: true },
  { path: `/model/${MODEL}`, with_key: true },
  { path: `/models/${MODEL}/endpoints` },
  { path: `/models/${MODEL}/endpoints`, with_key: true },
  { path: '/endpoints/zdr' },
  { path: '/providers', with_key: true },
];

/** Starts the gateway with a configuration as a user would, and sends one catalog query at a time. */
export async function measureListings(
  configFile: string,
  { directory, core, repeats }: { directory: string; core: number | undefined; repeats: number },
): Promise<Listings> {
  const port = await freePort();
  const data = join(directory, 'listings');
  mkdirSync(data, { recursive: true });
  const program = new Program({
    args: [join(ROOT, 'bin/model-gateway.cjs'), 'serve'],
    env: {
      GATEWAY_HOST: '127.0.0.1',
      GATEWAY_PORT: String(port),
      GATEWAY_DATA_DIR: data,
      GATEWAY_CONFIG: configFile,
      GATEWAY_MANAGEMENT_KEY: MANAGEMENT_KEY,
    },
    log: join(directory, 'listings.log'),
    core,
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const readyMs = await program.ready(port, '/health/ready', (status) => status === 200);
    await sleep(1_000);
    const idleBytes = program.usage().rss_bytes;
    const made = await ask(agent, port, '/api/v1/keys', { body: '{"name":"bench"}', key: MANAGEMENT_KEY });
    const { key } = JSON.parse(made.body) as { key: string };
    const rows: ListingRow[] = [];
    for (const { path, is_known, with_key } of QUERIES) {
      const more = with_key ? { key } : {};
      const first = await ask(agent, port, `/api/v1${path}`, more);
      const known = is_known && first.etag !== undefined ? { etag: first.etag } : {};
      const times: number[] = [];
      let last = first;
      const beforeMs = program.usage().cpu_ms;
      for (let repeat = 0; repeat < repeats; repeat += 1) {
        last = await ask(agent, port, `/api/v1${path}`, { ...more, ...known });
        times.push(last.took_ms);
      }
      times.sort((a, b) => a - b);
      rows.push({
        path: path + (with_key ? ' (key)' : '') + (is_known ? ' (If-None-Match)' : ''),
        status: last.status,
        bytes: last.bytes,
        first_ms: first.took_ms,
        cpu_ms: (program.usage().cpu_ms - beforeMs) / repeats,
        p50_ms: times[times.length >> 1] ?? Number.NaN,
        p99_ms: times[Math.floor(times.length * 0.99)] ?? Number.NaN,
      });
    }
    return { ready_ms: readyMs, idle_bytes: idleBytes, rows };
  } finally {
    agent.destroy();
    await program.stop();
  }
}
