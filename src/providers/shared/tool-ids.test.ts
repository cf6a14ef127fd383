import { expect, test } from 'vitest';
import { fitCallId, fitToolName, mintCallId } from './tool-ids.ts';

test('a generated id depends on generation and ordinal only', () => {
  expect(mintCallId('gen-1', 0)).toMatch(/^call_[0-9A-Za-z]{24}$/);
  expect(mintCallId('gen-1', 0)).toBe(mintCallId('gen-1', 0));
  expect(new Set([mintCallId('gen-1', 0), mintCallId('gen-1', 1), mintCallId('gen-2', 0)]).size).toBe(3);
});

test('an id that fits is kept, and another has one replacement', () => {
  const nine = /^[A-Za-z0-9]{9}$/;
  expect(fitCallId('abcDEF123', nine, 9)).toBe('abcDEF123');
  expect(fitCallId('call_1', nine, 9)).toMatch(nine);
  expect(fitCallId('call_1', nine, 9)).toBe(fitCallId('call_1', nine, 9));
  expect(fitCallId('call_1', nine, 9)).not.toBe(fitCallId('call_2', nine, 9));
});

test('a tool name becomes valid, and different names stay different', () => {
  expect(fitToolName('get_weather-2')).toBe('get_weather-2');
  expect(fitToolName('files.read')).toMatch(/^files_read_[0-9A-Za-z]{6}$/);
  expect(fitToolName('files.read')).not.toBe(fitToolName('files/read'));
  expect(fitToolName('x'.repeat(90))).toHaveLength(64);
});
