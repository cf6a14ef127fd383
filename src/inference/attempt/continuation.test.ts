import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatChunk, ChatRequest } from '../../schemas/inner.ts';
import { continuedRequest, continuesText, fitContinued, isContinuable, OverlapCut, ShownText } from './continuation.ts';

const chunk = (content: string): ChatChunk => ({ delta: { content } });
const textOf = (chunks: readonly ChatChunk[]) => chunks.map(({ delta }) => delta.content ?? '').join('');
const pieces = (text: string, cuts: readonly number[]) => {
  const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, nth) => text.slice(from, at[nth])).filter((piece) => piece !== '');
};

const inSteps = (text: string, size: number) => text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];

function cutAll(shown: string, more: readonly string[]): string {
  const cut = new OverlapCut(shown);
  const out = more.flatMap((piece) => cut.add([chunk(piece)]));
  return textOf([...out, ...cut.add([{ delta: {}, finish_reason: 'stop' }]), ...cut.end()]);
}

describe('a continuation that repeats the end of the shown text', () => {
  const shown = 'The old mill by the river had stood there for years, and';
  test.each<[string, string, string]>([
    ['nothing', ' nobody knew.', ' nobody knew.'],
    ['all of the shown text', `${shown} nobody knew.`, ' nobody knew.'],
    ['the tail of the shown text', 'there for years, and nobody knew.', ' nobody knew.'],
    ['all of the shown text and nothing else', shown, ''],
    ['the beginning of the shown text and nothing else', shown.slice(0, 30), ''],
    ['a word that ends the shown text by chance', 'and nobody', 'and nobody'],
    ['a word from the middle of the shown text', 'river people', 'river people'],
  ])('loses the repeated part: %s', (_what, more, kept) => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 8 }), (cuts) => {
        expect(cutAll(shown, pieces(more, cuts))).toBe(kept);
      }),
    );
  });

  test.each([
    ['one space', 'One river ', ' flows', 'flows'],
    ['two of three line breaks', 'One river.\n\n\n', '\n\nflows', 'flows'],
    ['none', 'One river ', 'flows', 'flows'],
    [
      'the space of a repeated syllable',
      'ha ha ha ha ha ha ha ha ',
      ' ha ha ha ha ha ha ha ha, he said',
      'ha ha ha ha ha ha ha ha, he said',
    ],
  ])('whitespace that was removed from the sent text appears once in the answer: %s', (_what, before, more, kept) => {
    expect(cutAll(before, [more])).toBe(kept);
  });

  test.each<[string, string, string, string]>([
    ['all of the text', `${shown}\n\n`, `${shown} nobody`, ' nobody'],
    ['all of the text and one line break', `${shown}\n\n`, `${shown}\n nobody`, ' nobody'],
    ['the tail of the text', `${shown} `, 'there for years, andnobody', 'nobody'],
  ])('a repetition is recognized if the whitespace after the sent text differs: %s', (_what, before, more, kept) => {
    for (const size of [1, 3, 1000]) expect(cutAll(before, inSteps(more, size))).toBe(kept);
  });

  test.each<[string, string, string]>([
    ['a line', '-'.repeat(40), `${'-'.repeat(30)}|\n`],
    ['a table', '| a |\n| --- | --- | --- | --- |', ' --- | --- | --- |\n'],
    ['an indentation', `do {\n${' '.repeat(40)}if`, `${' '.repeat(20)}then`],
    ['repeated syllables', 'ha ha ha ha ha ha ha ha', ' ha ha ha ha ha ha ha ha, he said'],
    ['a list', 'Buy:\n- bread and butter\n- bread and butter', '\n- bread and butter\n- tea'],
    ['zeros to the end', '0'.repeat(40), '0'.repeat(40)],
  ])('a periodic text that continues its period is kept: %s', (_what, before, more) => {
    for (const size of [1, 3, 1000]) expect(cutAll(before, inSteps(more, size))).toBe(more);
  });

  test.each<[string, string, string, string]>([
    ['all of the text', 'row row ro', 'row row row your boat', 'w your boat'],
    ['the tail of the text', 'Merrily merrily merrily mer', 'merrily merrily merrily, life', 'rily, life'],
  ])('the repetition of a periodic text is cut if it does not continue the period: %s', (_what, before, more, kept) => {
    for (const size of [1, 3, 1000]) expect(cutAll(before, inSteps(more, size))).toBe(kept);
  });

  test('a text that repeats nothing is returned whole, however it is split', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', ' '), maxLength: 40 });
    fc.assert(
      fc.property(word, word, fc.array(fc.nat(), { maxLength: 12 }), (before, tail, cuts) => {
        const more = `${tail}X${before}`;
        const kept = cutAll(`${before}Y`, pieces(more, cuts));
        expect(kept).toBe(more);
      }),
    );
  });

  test('a repetition that is long enough is cut, however it is split', () => {
    const text = fc.string({ minLength: 40, maxLength: 120 });
    fc.assert(
      fc.property(
        text,
        fc.integer({ min: 16, max: 40 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        (random, length, cuts) => {
          // Whitespace at the end has a rule of its own; the length makes the text unique, so that it is repeated at one place only.
          const before = `${random}<${random.length}>`;
          const more = `${before.slice(-length)}\u0001 new`;
          expect(cutAll(before, pieces(more, cuts))).toBe('\u0001 new');
        },
      ),
    );
  });

  test('a repeated beginning is cut also if the answer reaches its length limit soon after it', () => {
    const ended = (more: string, finishReason: 'stop' | 'length') => {
      const cut = new OverlapCut(shown);
      return textOf([...cut.add([chunk(more)]), ...cut.add([{ delta: {}, finish_reason: finishReason }])]);
    };
    expect([ended('The old', 'length'), ended('The old', 'stop'), ended('river', 'length')]).toEqual([
      '',
      'The old',
      'river',
    ]);
  });

  test('an answer that starts again and then differs is refused', () => {
    const cut = new OverlapCut(shown);
    expect(textOf(cut.add([chunk(shown.slice(0, 40))]))).toBe('');
    expect(() => cut.add([chunk(' and then not')])).toThrow('started a new answer');
  });

  test('text is passed on as soon as it cannot be a repetition', () => {
    const cut = new OverlapCut(shown);
    expect(textOf(cut.add([chunk(' n')]))).toBe(' n');
    expect(textOf(cut.add([chunk('obody')]))).toBe('obody');
  });
});

const ask = (more: object): ChatRequest => ({ messages: [{ role: 'user', content: 'x' }], ...more });

test('only answers in plain text, requested without reasoning, can be continued', () => {
  for (const fine of [
    {},
    { reasoning: { enabled: false } },
    { reasoning_effort: 'none' },
    { tools: [] },
    { enable_thinking: false },
  ]) {
    expect([fine, isContinuable(ask(fine))]).toEqual([fine, true]);
  }
  for (const not of [
    { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
    { reasoning: {} },
    { reasoning_effort: 'low' },
    { logprobs: true },
    { modalities: ['text', 'audio'] },
    { guided_json: { type: 'object' } },
    { structured_outputs: { regex: 'a+' } },
    { thinking: { type: 'enabled', budget_tokens: 2_000 } },
    { chat_template_kwargs: { enable_thinking: true } },
    { provider: { options: { vllm: { guided_choice: ['a', 'b'] } } } },
    { provider: { options: { anthropic: { output_config: { format: { type: 'json_schema' } } } } } },
    { messages: [{ role: 'assistant', content: 'y' }] },
  ]) {
    expect([not, isContinuable(ask(not))]).toEqual([not, false]);
  }
});

test('an endpoint continues a text only if its quirks declare it', () => {
  const at = (quirks: object) => continuesText({ endpoint: { quirks } } as unknown as Candidate);
  expect([at({}), at({ prefill: true }), at({ prefill_prefix: true }), at({ continue_final_message: true })]).toEqual([
    false,
    true,
    true,
    true,
  ]);
  expect([at({ prefill: true, no_prefill: true }), at({ prefill: true, thinking_default: 'on' })]).toEqual([
    false,
    false,
  ]);
});

test('a continuation gets the remaining output tokens, and reasoning is disabled if it is on by default', () => {
  const request = ask({ max_tokens: 50, max_completion_tokens: 60 });
  expect(continuedRequest(request, { text: 'One ', tokens: 20 })).toMatchObject({
    max_tokens: 30,
    max_completion_tokens: 40,
    messages: [{ role: 'user' }, { role: 'assistant', content: 'One' }],
  });
  expect(continuedRequest(request, { text: 'One', tokens: 50 })).toBeUndefined();
  const fitted = (reasoningField: string) =>
    fitContinued(request, { endpoint: { quirks: { reasoning_field: reasoningField } } } as unknown as Candidate)
      .reasoning;
  expect([fitted('thinking_effort'), fitted('reasoning_effort')]).toEqual([{ enabled: false }, undefined]);
});

test.each<[string, ChatChunk]>([
  ['a tool call', { delta: { tool_calls: [{ index: 0, function: { arguments: '{' } }] } }],
  ['reasoning', { delta: { reasoning: 'Hm' } }],
  ['a citation', { delta: { annotations: [{ type: 'file' }] } }],
  ['an image', { delta: { images: [] as never[], audio: {} } }],
  ['half a character', { delta: { content: '\ud83c' } }],
])('an answer with %s cannot be continued as text', (_what, more) => {
  const shown = new ShownText();
  shown.add([{ delta: { role: 'assistant', content: '' } }, chunk('One')]);
  expect(shown.text).toBe('One');
  shown.add([more]);
  expect(shown.text).toBeUndefined();
});
