import { describe, expect, test } from 'vitest';
import type { ToolContext } from '../../inference/tools/server-tools.ts';
import { datetimeIn, datetimeTool } from './datetime.ts';

const at = (text: string) => Date.parse(text);
const run = async (parameters: object, args: object, now: string) => {
  const context = { now_ms: at(now) } as ToolContext;
  const { content } = await datetimeTool(parameters as never).run(args as never, context);
  return JSON.parse(content) as unknown;
};

describe('the time', () => {
  test.each([
    // Around the start and the end of summer time.
    ['Europe/Berlin', '2026-03-29T00:59:59Z', '2026-03-29T01:59:59+01:00'],
    ['Europe/Berlin', '2026-03-29T01:00:00Z', '2026-03-29T03:00:00+02:00'],
    ['Europe/Berlin', '2026-10-25T00:59:59Z', '2026-10-25T02:59:59+02:00'],
    ['Europe/Berlin', '2026-10-25T01:00:00Z', '2026-10-25T02:00:00+01:00'],
    ['America/New_York', '2026-03-08T06:59:59Z', '2026-03-08T01:59:59-05:00'],
    ['America/New_York', '2026-03-08T07:00:00Z', '2026-03-08T03:00:00-04:00'],
    // By half an hour.
    ['Australia/Lord_Howe', '2026-10-03T15:29:59Z', '2026-10-04T01:59:59+10:30'],
    ['Australia/Lord_Howe', '2026-10-03T15:30:00Z', '2026-10-04T02:30:00+11:00'],
    ['Asia/Kathmandu', '2026-01-01T00:00:00Z', '2026-01-01T05:45:00+05:45'],
    ['UTC', '2026-12-31T23:59:59Z', '2026-12-31T23:59:59+00:00'],
    ['Pacific/Kiritimati', '2026-12-31T10:00:00Z', '2027-01-01T00:00:00+14:00'],
  ])('in %s at %s is %s', (timezone, now, shown) => {
    expect(datetimeIn(timezone, at(now))).toBe(shown);
    expect(Date.parse(shown)).toBe(at(now));
  });
});

test('the tool uses the time zone of the call, or else of the options, or else UTC', async () => {
  const now = '2026-07-01T12:00:00Z';
  expect(await run({}, {}, now)).toEqual({ datetime: '2026-07-01T12:00:00+00:00', timezone: 'UTC' });
  const tokyo = { timezone: 'Asia/Tokyo' };
  expect(await run(tokyo, {}, now)).toEqual({ datetime: '2026-07-01T21:00:00+09:00', timezone: 'Asia/Tokyo' });
  expect(await run(tokyo, { timezone: 'UTC' }, now)).toMatchObject({ timezone: 'UTC' });
});

test('an unknown time zone is an error that the model sees', async () => {
  await expect(run({}, { timezone: 'Europe/Atlantis' }, '2026-07-01T12:00:00Z')).rejects.toThrow(
    'arguments.timezone must be an IANA time zone such as Europe/Berlin',
  );
});
