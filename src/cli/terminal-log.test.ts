import { expect, test } from 'vitest';
import { createLog } from '../telemetry/log.ts';
import { readableOutput } from './terminal-log.ts';

function written(hasColours = false) {
  const lines: string[] = [];
  const log = createLog('info', readableOutput({ write: (line) => void lines.push(line) }, { hasColours }));
  return { log, lines };
}

const request = {
  request_id: 'r',
  method: 'POST',
  path: '/api/v1/chat/completions',
  status: 200,
  ms: 532,
  key_id: 1,
};
const answer = { model: 'acme/m', provider: 'Acme', prompt_tokens: 12, completion_tokens: 200, cost: 0.000412 };

test('a request is one line: time, method, path, status, model, provider, tokens, cost and milliseconds', () => {
  const { log, lines } = written();
  log.request({ ...request, ...answer });
  log.request({ ...request, status: 404, path: '/nothing' });
  log.request({ ...request, ...answer, model: 'gateway/auto', served_model: 'acme/m', client_left: true });
  const [whole = '', unknown = '', left = ''] = lines;
  expect(whole).toMatch(
    /^\d\d:\d\d:\d\d {2}POST \/api\/v1\/chat\/completions {2}200 {2}acme\/m {2}Acme {2}12 \+ 200 tokens {2}\$0\.000412 {2}532 ms\n$/,
  );
  expect(unknown).toMatch(/^\S+ {2}POST \/nothing {2}404 {2}532 ms\n$/);
  expect(left).toMatch(/ {2}acme\/m {2}Acme .* {2}client left\n$/);
});

test('the status is coloured if the terminal supports it', () => {
  const { log, lines } = written(true);
  for (const status of [200, 404, 502]) log.request({ ...request, status });
  expect(lines[0]).toContain('\x1b[32m200\x1b[0m');
  expect(lines[1]).toContain('\x1b[33m404\x1b[0m');
  expect(lines[2]).toContain('\x1b[31m502\x1b[0m');
  const plain = written();
  plain.log.request(request);
  expect(plain.lines.join('')).not.toContain('\x1b');
});

test('other lines have their message with the facts, and an error with its stack', () => {
  const { log, lines } = written();
  log.info('Server listening at http://127.0.0.1:1');
  log.warn({ bound: 'connections_max' }, 'all connections are in use');
  log.error({ err: new Error('it broke') }, 'stream failed');
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatch(/^\S+ {2}WARN {2}all connections are in use {2}bound=connections_max\n$/);
  expect(lines[1]).toMatch(/^\S+ {2}ERROR {2}stream failed\n {2}Error: it broke\n {6}at /);
});

test('texts of clients cannot move the cursor or start a line', () => {
  const { log, lines } = written();
  log.request({ ...request, path: '/a\u009b2J\n00:00:00', model: 'x\u001b[2J\r' });
  log.warn({ name: 'a\nb' }, 'c\nd');
  for (const line of lines) expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}]/u);
});
