import { describe, expect, test } from 'vitest';
import { type CallStep, createCallReader } from './tool-calls.ts';
import type { WireToolCall } from './wire.ts';

interface DecodedCall {
  id: string;
  name: string;
  arguments: string;
}

function read(
  deltas: (WireToolCall | null)[][],
  used: string[] = [],
  isWhole = false,
  declared: string[] = [],
): DecodedCall[] {
  const reader = createCallReader('gen-1', used, (name) => name, declared);
  const steps: CallStep[] = [...deltas.flatMap((entries) => reader.read(entries, isWhole)), ...reader.end()];
  const calls: DecodedCall[] = [];
  for (const step of steps) {
    if (step.opens !== undefined) calls[step.ordinal] = { id: step.opens.id, name: step.opens.name, arguments: '' };
    calls[step.ordinal]!.arguments += step.arguments;
  }
  return calls;
}

const f = (name: string, text = ''): WireToolCall['function'] => ({ name, arguments: text });
const args = (text: string): WireToolCall['function'] => ({ arguments: text });
const minted = expect.stringMatching(/^call_[0-9A-Za-z]{24}$/);

describe('calls are separated', () => {
  test.each<[string, (WireToolCall | null)[][], object[]]>([
    [
      'by index',
      [
        [{ index: 0, id: 'a', function: f('x') }],
        [{ index: 1, id: 'b', function: f('y') }],
        [{ index: 0, function: args('{}') }],
      ],
      [
        { id: 'a', name: 'x', arguments: '{}' },
        { id: 'b', name: 'y', arguments: '{}' },
      ],
    ],
    [
      'by a new id on the same index',
      [[{ index: 0, id: 'a', function: f('x', '{}') }], [{ index: 0, id: 'b', function: f('x', '{"b":1}') }]],
      [
        { id: 'a', name: 'x', arguments: '{}' },
        { id: 'b', name: 'x', arguments: '{"b":1}' },
      ],
    ],
    [
      'by interleaved ids on the same index',
      [
        [{ index: 0, id: 'a', function: f('x', '{"a"') }],
        [{ index: 0, id: 'b', function: f('x', '{"b"') }],
        [{ index: 0, id: 'a', function: args(':1}') }],
        [{ index: 0, id: 'b', function: args(':2}') }],
      ],
      [
        { id: 'a', name: 'x', arguments: '{"a":1}' },
        { id: 'b', name: 'x', arguments: '{"b":2}' },
      ],
    ],
    [
      'by id without an index',
      [[{ id: 'a', function: f('x', '{') }], [{ id: 'b', function: f('y', '{}') }], [{ id: 'a', function: args('}') }]],
      [
        { id: 'a', name: 'x', arguments: '{}' },
        { id: 'b', name: 'y', arguments: '{}' },
      ],
    ],
    [
      'by name without index and id',
      [[{ function: f('x', '{"a":1}') }, { function: f('x', '{"a":2}') }], [{ function: f('y') }]],
      [
        { id: minted, name: 'x', arguments: '{"a":1}' },
        { id: minted, name: 'x', arguments: '{"a":2}' },
        { id: minted, name: 'y', arguments: '{}' },
      ],
    ],
    [
      'but not by a repeated id or name',
      [
        [{ index: 0, id: 'a', function: f('x') }],
        [{ index: 0, id: 'a', function: f('x', '{"a"') }],
        [{ index: 0, id: 'a', function: f('x', ':1}') }],
      ],
      [{ id: 'a', name: 'x', arguments: '{"a":1}' }],
    ],
    [
      'but not by a repeated name alone',
      [[{ index: 0, function: f('x', '{"a"') }], [{ index: 0, function: f('x', ':1}') }]],
      [{ id: minted, name: 'x', arguments: '{"a":1}' }],
    ],
    [
      'but not by an id of its own in every delta (Poolside)',
      [
        [{ index: 0, id: 'a', function: f('x') }],
        [{ index: 0, id: 'b', function: args('{"a"') }],
        [{ index: 0, id: 'b', function: { name: '', arguments: ':1}' } }],
        [{ index: 0, id: 'c', function: f('x') }],
        [{ index: 0, id: 'd', function: args('{}') }],
      ],
      [
        { id: 'a', name: 'x', arguments: '{"a":1}' },
        { id: 'c', name: 'x', arguments: '{}' },
      ],
    ],
    [
      'by an index that is a text',
      [
        [{ index: '0', id: 'a', function: f('x', '{') }] as unknown as WireToolCall[],
        [{ index: '1', id: 'b', function: f('y', '{') }] as unknown as WireToolCall[],
        [{ index: '0', function: args('}') }] as unknown as WireToolCall[],
        [{ index: '1', function: args('}') }] as unknown as WireToolCall[],
      ],
      [
        { id: 'a', name: 'x', arguments: '{}' },
        { id: 'b', name: 'y', arguments: '{}' },
      ],
    ],
    [
      'and an empty object before the arguments is ignored',
      [[{ index: 0, id: 'a', function: { name: 'x', arguments: {} } }], [{ index: 0, function: args('{"a":1}') }]],
      [{ id: 'a', name: 'x', arguments: '{"a":1}' }],
    ],
    [
      'and a late name keeps the arguments before it',
      [[{ index: 0, id: 'a', function: args('{"a"') }], [{ index: 0, function: f('x', ':1}') }]],
      [{ id: 'a', name: 'x', arguments: '{"a":1}' }],
    ],
    ['and an empty list has no call', [[null, {}, { id: '', function: f('') }, { custom: { name: '' } }]], []],
    [
      'and arguments may be an object',
      [[{ index: 0, id: 'a', function: { name: 'x', arguments: { b: [1] } } }]],
      [{ id: 'a', name: 'x', arguments: '{"b":[1]}' }],
    ],
    [
      'and the text of a custom tool is its input',
      [[{ index: 0, id: 'a', custom: { name: 'x', input: 'say "' } }], [{ index: 0, custom: { input: 'hi"\n' } }]],
      [{ id: 'a', name: 'x', arguments: '{"input":"say \\"hi\\"\\n"}' }],
    ],
  ])('%s', (_rule, deltas, expected) => {
    expect(read(deltas)).toEqual(expected);
  });

  test('in a whole message every entry is a call', () => {
    const entries = [
      { index: 0, id: 'a', function: f('x', '{}') },
      { index: 0, id: 'a', function: f('x', '{}') },
    ];
    expect(read([entries], [], true)).toEqual([
      { id: 'a', name: 'x', arguments: '{}' },
      { id: minted, name: 'x', arguments: '{}' },
    ]);
  });
});

test('an id of the conversation is replaced, and the upstream’s id is kept separately', () => {
  const reader = createCallReader('gen-1', ['call_0'], (name) => name);
  const [step] = reader.read([{ index: 0, id: 'call_0', function: f('x', '{}') }], false);
  expect(step!.opens).toEqual({ id: minted, name: 'x', rest: { id: 'call_0' } });
});

describe('a name in pieces', () => {
  const pieces = [
    [{ index: 0, id: 'a', function: f('get_') }],
    [{ index: 0, function: f('wea') }],
    [{ index: 0, function: f('ther') }],
    [{ index: 0, function: args('{"a":1}') }],
  ];

  test('is joined if a tool of that name is declared', () => {
    const whole = { id: 'a', name: 'get_weather', arguments: '{"a":1}' };
    expect(read(pieces, [], false, ['get_time', 'get_weather'])).toEqual([whole]);
    const repeated = pieces.map(([entry]) => [{ ...entry!, id: 'a' }]);
    expect(read(repeated, [], false, ['get_weather'])).toEqual([whole]);
    expect(read(pieces.slice(0, 3), [], false, ['get_weather'])).toEqual([{ ...whole, arguments: '{}' }]);
  });

  test('is not joined with a complete name or with another call', () => {
    const two = [[{ index: 0, function: f('get') }], [{ index: 0, function: f('weather', '{}') }]];
    expect(read(two, [], false, ['get', 'weather']).map(({ name }) => name)).toEqual(['get', 'weather']);
    const long = ['get', 'get_weather'];
    expect(
      read(
        [[{ index: 0, id: 'a', function: f('get') }], [{ index: 0, function: f('_weather', '{}') }]],
        [],
        false,
        long,
      ),
    ).toEqual([{ id: 'a', name: 'get_weather', arguments: '{}' }]);
    for (const text of ['{"a":1}', '']) {
      const short = [
        [{ index: 0, id: 'a', function: f('get') }],
        [{ index: 0, function: args(text) }],
        [{ index: 1, id: 'b', function: f('get', '{}') }],
      ];
      expect(read(short, [], false, long)).toEqual([
        { id: 'a', name: 'get', arguments: text || '{}' },
        { id: 'b', name: 'get', arguments: '{}' },
      ]);
    }
    const reader = createCallReader('gen-1', [], (name) => name, long);
    const opened = [f('get'), f('get_weather', '{}'), f('get')].flatMap((called, index) =>
      reader.read([{ index, function: called }], false).map(({ ordinal }) => ordinal),
    );
    expect([...opened, ...reader.end().map(({ ordinal }) => ordinal)]).toEqual([0, 1, 0, 2]);
    // A call that is cut short is decoded up to the cut.
    expect(read([[{ index: 0, function: f('get_', '{}') }]], [], false, ['get_weather'])).toMatchObject([
      { name: 'get_' },
    ]);
  });
});
