import { describe, expect, test } from 'vitest';
import type { ToolTemplate } from './markup.ts';
import { type Run, TOOL_TEMPLATE_CALL_CHARS_MAX, TOOL_TEMPLATE_GAP_CHARS_MAX, ToolCallParser } from './parser.ts';

const AUTO: ToolTemplate = { names: ['look', 'write'], is_forced: false, is_single: false };

/** The runs of a text that arrives in these pieces, with adjacent texts joined. */
function read(pieces: readonly string[], template: ToolTemplate = AUTO): Run[] {
  const parser = new ToolCallParser(template);
  const runs = [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end()];
  const joined: Run[] = [];
  for (const run of runs) {
    const last = joined.at(-1);
    if ('text' in run && last !== undefined && 'text' in last) last.text += run.text;
    else joined.push({ ...run });
  }
  return joined;
}
const call = (name: string, args: unknown) => `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const looked = (args: unknown = {}) => ({ name: 'look', arguments: JSON.stringify(args) });

/** Every sample text is split here at every offset, and into single characters. */
const SAMPLES: [string, string, ToolTemplate, Run[]][] = [
  ['text alone', 'Hello,\n\n world <b> \n', AUTO, [{ text: 'Hello,\n\n world <b> \n' }]],
  ['one call', call('look', { at: 'x' }), AUTO, [looked({ at: 'x' })]],
  [
    'text around a call',
    `Let me look.\n\n${call('look', {})}\nDone.`,
    AUTO,
    [{ text: 'Let me look.' }, looked(), { text: '\n\nDone.' }],
  ],
  [
    'several calls, with and without tags of their own',
    `${call('look', { n: 1 })}\n${call('write', { n: 2 })}<tool_call>{"name":"look"}\n{"name":"look","arguments":{"n":4}}</tool_call>`,
    AUTO,
    [looked({ n: 1 }), { name: 'write', arguments: '{"n":2}' }, looked(), looked({ n: 4 })],
  ],
  [
    'arguments that contain tags, braces and quotes',
    call('write', { text: '</tool_call> } "<tool_call>{" \\' }),
    AUTO,
    [{ name: 'write', arguments: JSON.stringify({ text: '</tool_call> } "<tool_call>{" \\' }) }],
  ],
  [
    'numbers keep their text',
    '<tool_call>{"name":"look","arguments":{"id":12345678901234567890,"x":1.0}}</tool_call>',
    AUTO,
    [{ name: 'look', arguments: '{"id":12345678901234567890,"x":1.0}' }],
  ],
  [
    'a code fence, other names of the arguments, line breaks in strings, and arguments as text',
    '<tool_call>```json\n{"name": "write", "parameters": {"text": "a\nb"}}\n```</tool_call><tool_call>{"name":"look","arguments":"{\\"a\\":1}"}</tool_call>',
    AUTO,
    [
      { name: 'write', arguments: '{"text":"a\\nb"}' },
      { name: 'look', arguments: '{"a":1}' },
    ],
  ],
  ['a call without its closing tag', `${call('look', {}).slice(0, -12)}`, AUTO, [looked()]],
  [
    'a call that is not closed before the next',
    '<tool_call>{"name":"look"}<tool_call>{"name":"write"}</tool_call>',
    AUTO,
    [looked(), { name: 'write', arguments: '{}' }],
  ],
  ...(
    [
      ['a tool that there is not', call('fly', {})],
      ['arguments that are no object', '<tool_call>{"name":"look","arguments":[1]}</tool_call>'],
      ['JSON that is none', '<tool_call>{"name":"look","arguments":{oops}}</tool_call>'],
      ['a call that breaks off', 'So: <tool_call>{"name":"look","argum'],
      ['a tag that people talk about', 'Write <tool_call> first, then </tool_call>.'],
      ['brackets that do not match', '<tool_call>{"name":"look"]</tool_call>'],
      ['another markup', '<tool_call>\n<function=look></function>\n</tool_call> Bye'],
    ] as const
  ).map(([name, text]): [string, string, ToolTemplate, Run[]] => [`${name} stays text`, text, AUTO, [{ text }]]),
  [
    'a call after a broken one',
    `<tool_call>{"name":"look","arguments":{</tool_call>\n${call('look', { n: 2 })}`,
    AUTO,
    [{ text: '<tool_call>{"name":"look","arguments":{</tool_call>' }, looked({ n: 2 })],
  ],
  [
    'one call at most',
    `${call('look', { n: 1 })}\n${call('look', { n: 2 })} over`,
    { ...AUTO, is_single: true },
    [looked({ n: 1 }), { text: 'over' }],
  ],
  [
    'a forced call without tags',
    '\n```json\n{"name": "look", "arguments": {"at": 1}}\n```',
    { ...AUTO, is_forced: true },
    [looked({ at: 1 })],
  ],
  ['a forced call with tags', call('look', { at: 1 }), { ...AUTO, is_forced: true }, [looked({ at: 1 })]],
  [
    'JSON that is not a call, after a forced call',
    '{"answer": 42} and more',
    { ...AUTO, is_forced: true },
    [{ text: '{"answer": 42} and more' }],
  ],
  ['text in place of a forced call', ' I will not. ', { ...AUTO, is_forced: true }, [{ text: ' I will not. ' }]],
];

describe('calls in a text are recognized, wherever it is split', () => {
  test.each(SAMPLES)('%s', (_name, text, template, runs) => {
    expect(read([text], template)).toEqual(runs);
    expect(read([...text], template)).toEqual(runs);
    for (let at = 1; at < text.length; at += 1) {
      expect(read([text.slice(0, at), text.slice(at)], template)).toEqual(runs);
    }
  });

  test('all samples in one text, split in several sizes', () => {
    const texts = SAMPLES.filter(([, , { is_forced: isForced, is_single: isSingle }]) => !isForced && !isSingle).map(
      ([, text]) => text,
    );
    const text = texts.filter((one) => !one.includes('breaks off')).join('\n— next —\n');
    const whole = read([text]);
    expect(whole.filter((run) => 'name' in run).length).toBeGreaterThan(10);
    for (const chars of [1, 2, 3, 5, 7, 11, 64, 255, 256, 257]) {
      const pieces = Array.from({ length: Math.ceil(text.length / chars) }, (_, i) =>
        text.slice(i * chars, (i + 1) * chars),
      );
      expect(read(pieces)).toEqual(whole);
    }
  });
});

describe('buffered text is bounded', () => {
  test('a call over the length limit is text, and the text after it is parsed', () => {
    const long = `<tool_call>{"name":"look","arguments":{"a":"${'x'.repeat(TOOL_TEMPLATE_CALL_CHARS_MAX)}"}}</tool_call>`;
    for (const pieces of [[long], long.match(/.{1,1000}/gs)!]) {
      const parser = new ToolCallParser(AUTO);
      let textChars = 0;
      let held = 0;
      let readChars = 0;
      for (const piece of pieces) {
        readChars += piece.length;
        for (const run of parser.push(piece)) textChars += 'text' in run ? run.text.length : Number.NaN;
        held = Math.max(held, readChars - textChars);
      }
      for (const run of parser.end()) textChars += 'text' in run ? run.text.length : Number.NaN;
      expect(textChars).toBe(long.length);
      expect(held).toBeLessThanOrEqual(TOOL_TEMPLATE_CALL_CHARS_MAX + 1100);
    }
    expect(read([long, call('look', {})]).at(-1)).toEqual(looked());
  });

  test('arguments that are nested too deeply are text', () => {
    const text = `<tool_call>{"name":"look","arguments":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}</tool_call>`;
    expect(read([text])).toEqual([{ text }]);
  });

  test('white space is held back up to a bound', () => {
    const space = '\n'.repeat(10_000);
    expect(read([...`a${space}${call('look', {})}`])).toEqual(read([`a${space}${call('look', {})}`]));
    const parser = new ToolCallParser(AUTO);
    const [run] = parser.push(space);
    expect((run as { text: string }).text).toHaveLength(10_000 - TOOL_TEMPLATE_GAP_CHARS_MAX);
  });
});
