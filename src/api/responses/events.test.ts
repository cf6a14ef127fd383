import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import { createEvents } from './events.ts';

test('long events are separate texts, short ones are joined, and the order is kept', () => {
  const { json_long_chars_min } = limits;
  Object.assign(limits, { json_long_chars_min: 200 });
  try {
    const events = createEvents();
    const long = `,"text":"${'x'.repeat(300)}"`;
    for (const [type, fields] of [
      ['a', ''],
      ['b', ''],
      ['c', long],
      ['d', long],
      ['e', ''],
    ] as const) {
      events.send(type, fields);
    }
    const texts = events.takeEach() as string[];
    expect(texts.map((text) => [...text.matchAll(/"type":"(.)"/g)].map(([, type]) => type).join(''))).toEqual([
      'ab',
      'c',
      'd',
      'e',
    ]);
    expect([events.takeEach(), events.take()]).toEqual(['', '']);
    events.send('f', '');
    expect(events.takeEach()).toBe('data: {"type":"f","sequence_number":5}\n\n');
    events.send('g', long);
    events.send('h', long);
    expect(events.take()).toBe(
      `data: {"type":"g","sequence_number":6${long}}\n\ndata: {"type":"h","sequence_number":7${long}}\n\n`,
    );
  } finally {
    Object.assign(limits, { json_long_chars_min });
  }
});
