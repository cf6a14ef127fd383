import { expect, test } from 'vitest';
import { axisOf, placesOf, tickText } from '../../console/axis.ts';

test('a chart ends at a round value that is not below its largest one, with at most five lines', () => {
  for (const most of [0.000_000_003, 0.0785, 0.147, 1, 3.2, 4, 7.5, 99, 101, 12_345, 7e9]) {
    const { top, ticks } = axisOf(most);
    expect([most, top >= most, top <= most * 2.6]).toEqual([most, true, true]);
    expect([most, ticks[0], ticks.at(-1), ticks.length <= 6]).toEqual([most, 0, top, true]);
    for (const tick of ticks) expect(String(Number(tick.toPrecision(3)))).toBe(String(Number(tick.toPrecision(12))));
  }
  expect(axisOf(3.2)).toEqual({ top: 4, ticks: [0, 1, 2, 3, 4] });
  expect(axisOf(0)).toEqual({ top: 1, ticks: [0] });
});

test('round values have no zeros after the last digit that counts', () => {
  const texts = {
    '$0.00': '$0',
    '$4.00': '$4',
    '$0.1500': '$0.15',
    '$1,500.00': '$1,500',
    '20.0 s': '20 s',
    '0 ms': '0',
    '0 %': '0',
    '0.0 tok/s': '0',
  };
  for (const [text, short] of Object.entries(texts)) expect(tickText(text)).toBe(short);
  expect(['100 %', '12.5 %', '1,000', '10.0 tok/s'].map(tickText)).toEqual(['100 %', '12.5 %', '1,000', '10 tok/s']);
});

test('dates along a chart are days, months, or hours with the day where it changes', () => {
  const utc = (time: string) => `${time.slice(0, 10)} ${time.slice(11, 16)}`;
  const texts = (times: readonly string[]) => placesOf(times, utc).map(({ text }) => text);
  const days = Array.from({ length: 30 }, (_, index) =>
    new Date(Date.UTC(2026, 9, 30 + index)).toISOString().slice(0, 10),
  );
  expect(texts(days)).toEqual(['Oct 30', 'Nov 3', 'Nov 7', 'Nov 11', 'Nov 15', 'Nov 19', 'Nov 23', 'Nov 27']);
  expect(texts(['2026-10-01', '2026-11-01'])).toEqual(['Oct 2026', 'Nov 2026']);
  const hours = Array.from({ length: 24 }, (_, index) => new Date(Date.UTC(2026, 10, 27, 20 + index)).toISOString());
  expect(texts(hours).slice(0, 3)).toEqual(['21:00\nNov 27', '00:00\nNov 28', '03:00']);
  const week = Array.from({ length: 168 }, (_, index) => new Date(Date.UTC(2026, 10, 1, 5 + index)).toISOString());
  expect(texts(week)).toEqual([2, 3, 4, 5, 6, 7, 8].map((day) => `00:00\nNov ${day}`));
  const minutes = Array.from({ length: 60 }, (_, index) =>
    new Date(Date.UTC(2026, 10, 27, 9, 3 + index)).toISOString(),
  );
  expect(texts(minutes)).toEqual(['09:10\nNov 27', '09:20', '09:30', '09:40', '09:50', '10:00']);
  expect(
    placesOf(days, utc)
      .map(({ isMinor }) => isMinor)
      .slice(0, 3),
  ).toEqual([false, true, false]);
});
