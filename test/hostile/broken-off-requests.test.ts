/**
 * A client that breaks off its request is logged as disconnected, which is not a success, not a fault of the gateway
 * and not a fault of the store.
 */
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const logged = () => gateway.log_lines.map((line) => JSON.parse(line) as Record<string, unknown>);

/** Sends a part of a request and closes its connection. Returns the log lines with its id. */
async function breakOff(id: string, path: string, headers: Record<string, string>, bytes: Buffer | string) {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  const head = { host: 'x', 'x-request-id': id, ...headers };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  socket.write(bytes);
  // The request has a line of its own only at its end: it is in progress if another one was answered after it.
  await (await fetch(`${gateway.url}/health/live`)).text();
  await (await fetch(`${gateway.url}/health/live`)).text();
  socket.destroy();
  const own = () => logged().filter(({ request_id }) => request_id === id);
  await vi.waitFor(() => expect(own().some(({ msg }) => msg === 'request')).toBe(true), { timeout: 60_000 });
  await (await fetch(`${gateway.url}/health/live`)).text();
  return own();
}

const KEY = () => ({ authorization: `Bearer ${gateway.key}` });
const LONG = { 'content-length': '50000' };
const JSON_TYPE = { 'content-type': 'application/json' };
const FORM = 'multipart/form-data; boundary=b';
const CASES: [what: string, path: string, headers: () => Record<string, string>, bytes: Buffer | string][] = [
  ['JSON', '/api/v1/chat/completions', () => ({ ...KEY(), ...JSON_TYPE, ...LONG }), '{"model":'],
  [
    'JSON in chunks',
    '/api/v1/messages',
    () => ({ ...KEY(), ...JSON_TYPE, 'transfer-encoding': 'chunked' }),
    '5\r\n{"mod\r\n',
  ],
  [
    'compressed JSON',
    '/api/v1/responses',
    () => ({ ...KEY(), ...JSON_TYPE, ...LONG, 'content-encoding': 'gzip' }),
    gzipSync('{"model": "sandbox/echo", "input": "a"}').subarray(0, 30),
  ],
  [
    'a form with a file',
    '/api/v1/audio/transcriptions',
    () => ({ ...KEY(), ...LONG, 'content-type': FORM }),
    '--b\r\n',
  ],
  [
    'a form of a page',
    '/sign-in',
    () => ({
      host: new URL(gateway.url).host,
      origin: gateway.url,
      'content-length': '500',
      'content-type': 'application/x-www-form-urlencoded',
    }),
    'key=a',
  ],
];

test.each(CASES)('%s', async (what, path, headers, bytes) => {
  const id = `broken-off-${what.replace(/\W+/g, '-')}`;
  const lines = await breakOff(id, path, headers(), bytes);
  expect(lines.filter(({ level }) => level !== 'info')).toEqual([]);
  expect(lines).toMatchObject([{ msg: 'request', path, status: 499, client_left: true }]);
});

test('metrics count them separately from answered requests', async () => {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(text).toMatch(/^gateway_\w+\{[^}]*operation="createTranscription"[^}]*status="499"[^}]*\} [1-9]/m);
  expect(text).not.toMatch(/operation="createTranscription"[^}]*status="(?:200|503)"/);
});
