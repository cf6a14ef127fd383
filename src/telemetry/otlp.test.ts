import { expect, test } from 'vitest';
import { spanJson } from './otlp.ts';

test('invalid Unicode from clients is replaced everywhere, so that no batch is invalid', () => {
  const half = '\ud83d';
  const json = spanJson({
    trace_id: '1'.repeat(32),
    span_id: '1'.repeat(16),
    name: `name ${half}`,
    start_ms: 1,
    end_ms: 2,
    attributes: { [`key ${half}`]: `value ${half}`, list: ['one', half], whole: '\u{1f600}' },
  });
  expect(json).not.toMatch(/\\ud[89a-f]/i);
  expect(JSON.parse(json)).toMatchObject({
    name: 'name \ufffd',
    attributes: [
      { key: 'key \ufffd', value: { stringValue: 'value \ufffd' } },
      { key: 'list', value: { arrayValue: { values: [{ stringValue: 'one' }, { stringValue: '\ufffd' }] } } },
      { key: 'whole', value: { stringValue: '\u{1f600}' } },
    ],
  });
});
