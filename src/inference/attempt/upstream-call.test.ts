import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import type { UpstreamResponse } from '../../providers/transport/upstream.ts';
import { type AuthAndErrors, readJson } from './upstream-call.ts';

const dialect: AuthAndErrors = {
  authorize: () => ({}),
  decodeError: (status, _headers, body) => new UpstreamError('unavailable', 'said', { status, raw: body.slice(0, 10) }),
};

/** A whole answer in one piece. */
function answerOf(bytes: Buffer): UpstreamResponse {
  const parts = Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, at) =>
    bytes.subarray(at * 65_536, (at + 1) * 65_536),
  );
  return { status: 200, headers: {}, complete: true, ready: () => undefined, read: () => parts.shift() };
}

const read = (text: string) => readJson(dialect, answerOf(Buffer.from(text)), { room: undefined });

test('a long answer is parsed in slices, and other work runs between them', async () => {
  const value = { a: 12_345_678_901_234_567_000, list: Array.from({ length: 40 }, (_, at) => `é${at}`.repeat(25_000)) };
  const text = JSON.stringify(value);
  let turns = 0;
  let isRead = false;
  const count = () => {
    turns += 1;
    if (!isRead) setImmediate(count);
  };
  setImmediate(count);
  const body = await read(text);
  isRead = true;
  expect(JSON.stringify(body)).toBe(text);
  expect(turns).toBeGreaterThanOrEqual(Math.floor(text.length / limits.json_piece_chars));
});

test('a long answer that is not JSON, or is nested too deeply, is an invalid response', async () => {
  const long = 'a'.repeat(limits.answer_turn_bytes_min);
  for (const text of [
    `{"a":"${long}"`,
    `{"a":"${long}"} b`,
    `<html>${long}`,
    `{"a":"${long}",}`,
    `\u001f\u008b${long}`,
  ]) {
    await expect(read(text)).rejects.toMatchObject({ failure: 'invalid_response', raw: text.slice(0, 10) });
  }
  const deep = `{"a":"${long}","b":${'['.repeat(1_000)}${']'.repeat(1_000)}}`;
  await expect(read(deep)).rejects.toThrow('nested deeper');
});
