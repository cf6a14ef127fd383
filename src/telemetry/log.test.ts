import { expect, test } from 'vitest';
import { GatewayError } from '../errors.ts';
import { UpstreamError } from '../providers/dialect.ts';
import { createLog } from './log.ts';

const FACTS = { request_id: 'r-1', method: 'POST', path: '/a"b', status: 200, ms: 12, key_id: null, model: 'é/x' };

function logged(level: string, write: (log: ReturnType<typeof createLog>) => void): string[] {
  const lines: string[] = [];
  write(createLog(level, { write: (line) => void lines.push(line) }));
  return lines;
}

test("a request's line equals the one of the general logger", () => {
  const [quick, plain] = logged('info', (log) => {
    log.request(FACTS);
    log.info(FACTS, 'request');
  });
  const withoutTime = (line: string | undefined) => line?.replace(/"time":"\d{4}-\d\d-\d\dT[\d:.]+Z"/, '"time":""');
  expect(quick).toContain('"time":"2');
  expect(withoutTime(quick)).toBe(withoutTime(plain));
});

test('a connection failure of a provider is logged with its code', () => {
  const err = new UpstreamError('unavailable', 'It broke', { transport_code: 'UND_ERR_SOCKET' });
  const [line = ''] = logged('info', (log) => log.error({ err }, 'request failed'));
  expect(JSON.parse(line)).toMatchObject({ err: { failure: 'unavailable', transport_code: 'UND_ERR_SOCKET' } });
});

test('the cause of an unreadable answer is logged without its message, which quotes the answer', () => {
  for (const read of [() => JSON.parse('a secret text'), () => 'x' in ('a secret text' as unknown as object)]) {
    let cause: unknown;
    try {
      read();
    } catch (error) {
      cause = error;
    }
    const err = new UpstreamError('invalid_response', 'It cannot be read', { status: 200, cause });
    const [line = ''] = logged('info', (log) => log.error({ err: new Error('outer', { cause: err }) }, 'failed'));
    expect(JSON.parse(line)).toMatchObject({ err: { cause: { failure: 'invalid_response' } } });
    expect(line).not.toContain('secret');
  }
});

test('a refusal is logged without a stack, and its cause with one', () => {
  const [refusal = '', fault = ''] = logged('info', (log) => {
    log.error({ err: new GatewayError(503, 'Try again soon') }, 'request failed');
    log.error({ err: new GatewayError(500, 'Failed', { cause: new TypeError('x is undefined') }) }, 'request failed');
  });
  expect((JSON.parse(refusal) as { err: unknown }).err).toEqual({ type: 'GatewayError', message: 'Try again soon' });
  const { err } = JSON.parse(fault) as { err: { cause: Record<string, unknown> } };
  expect(err).toEqual({ type: 'GatewayError', message: 'Failed', cause: err.cause });
  expect(err.cause).toMatchObject({
    message: 'x is undefined',
    stack: expect.stringContaining('log.test.ts') as string,
  });
});

test('a level above info omits requests', () => {
  expect(logged('warn', (log) => log.request(FACTS))).toEqual([]);
});
