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

describe('what repeats the text before it', () => {
  const shown = 'The old mill by the river had stood there for years, and';
  test.each<[string, string, string]>([
    ['nothing', ' nobody knew.', ' nobody knew.'],
    ['all of it', `${shown} nobody knew.`, ' nobody knew.'],
    ['its tail', 'there for years, and nobody knew.', ' nobody knew.'],
    ['all of it, and no more', shown, ''],
    ['its beginning, and no more', shown.slice(0, 30), ''],
    ['a word that stands at its end by chance', 'and nobody', 'and nobody'],
    ['a word of its middle', 'river people', 'river people'],
  ])('is cut: %s', (_what, more, kept) => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 8 }), (cuts) => {
        expect(cutAll(shown, pieces(more, cuts))).toBe(kept);
      }),
    );
  });

  test.each([
    ['one blank', 'One river ', ' flows', 'flows'],
    ['two of three', 'One river.\n\n\n', '\n\nflows', 'flows'],
    ['none', 'One river ', 'flows', 'flows'],
    [
      'that of a laugh',
      'ha ha ha ha ha ha ha ha ',
      ' ha ha ha ha ha ha ha ha, he said',
      'ha ha ha ha ha ha ha ha, he said',
    ],
  ])('the blank that was not sent back is not told twice: %s', (_what, before, more, kept) => {
    expect(cutAll(before, [more])).toBe(kept);
  });

  test.each<[string, string, string, string]>([
    ['all of it', `${shown}\n\n`, `${shown} nobody`, ' nobody'],
    ['all of it and one blank', `${shown}\n\n`, `${shown}\n nobody`, ' nobody'],
    ['its tail', `${shown} `, 'there for years, andnobody', 'nobody'],
  ])('what was sent without its blank is known where it comes back with another: %s', (_what, before, more, kept) => {
    for (const size of [1, 3, 1000]) expect(cutAll(before, inSteps(more, size))).toBe(kept);
  });

  test.each<[string, string, string]>([
    ['a line', '-'.repeat(40), `${'-'.repeat(30)}|\n`],
    ['a table', '| a |\n| --- | --- | --- | --- |', ' --- | --- | --- |\n'],
    ['an indentation', `do {\n${' '.repeat(40)}if`, `${' '.repeat(20)}then`],
    ['a laugh', 'ha ha ha ha ha ha ha ha', ' ha ha ha ha ha ha ha ha, he said'],
    ['a list', 'Buy:\n- bread and butter\n- bread and butter', '\n- bread and butter\n- tea'],
    ['numbers to the end', '0'.repeat(40), '0'.repeat(40)],
  ])('what is said again and again is said once more, not repeated: %s', (_what, before, more) => {
    for (const size of [1, 3, 1000]) expect(cutAll(before, inSteps(more, size))).toBe(more);
  });

  test.each<[string, string, string, string]>([
    ['all of it', 'row row ro', 'row row row your boat', 'w your boat'],
    ['its tail', 'Merrily merrily merrily mer', 'merrily merrily merrily, life', 'rily, life'],
  ])('what was said again and again is known for repeated where it does not go on: %s', (_what, before, more, kept) => {
    for (const size of [1, 3, 1000]) expect(cutAll(before, inSteps(more, size))).toBe(kept);
  });

  test('any text that is new comes through whole, however it is split', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', ' '), maxLength: 40 });
    fc.assert(
      fc.property(word, word, fc.array(fc.nat(), { maxLength: 12 }), (before, tail, cuts) => {
        const more = `${tail}X${before}`;
        const kept = cutAll(`${before}Y`, pieces(more, cuts));
        expect(kept).toBe(more);
      }),
    );
  });

  test('any repetition that is long enough is cut, however it is split', () => {
    const text = fc.string({ minLength: 40, maxLength: 120 });
    fc.assert(
      fc.property(
        text,
        fc.integer({ min: 16, max: 40 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        (random, length, cuts) => {
          // Blanks at the end have a rule of their own, and an unsplit text has no other place to be repeated from.
          const before = `${random}<${random.length}>`;
          const more = `${before.slice(-length)}\u0001 new`;
          expect(cutAll(before, pieces(more, cuts))).toBe('\u0001 new');
        },
      ),
    );
  });

  test('the beginning is known for repeated also where the answer is cut soon after it', () => {
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

  test('an answer that begins anew and says something else is refused', () => {
    const cut = new OverlapCut(shown);
    expect(textOf(cut.add([chunk(shown.slice(0, 40))]))).toBe('');
    expect(() => cut.add([chunk(' and then not')])).toThrow('started a new answer');
  });

  test('nothing is held back once it is plain that nothing is repeated', () => {
    const cut = new OverlapCut(shown);
    expect(textOf(cut.add([chunk(' n')]))).toBe(' n');
    expect(textOf(cut.add([chunk('obody')]))).toBe('obody');
  });
});

const ask = (more: object): ChatRequest => ({ messages: [{ role: 'user', content: 'x' }], ...more });

test('only what is asked for as plain text, without thinking, may be continued', () => {
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

test('an endpoint goes on with a text only where that is known of it', () => {
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

test('the bound is what the answer has left, and thinking is off where it would be on of itself', () => {
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
])('a text with %s is not text alone', (_what, more) => {
  const shown = new ShownText();
  shown.add([{ delta: { role: 'assistant', content: '' } }, chunk('One')]);
  expect(shown.text).toBe('One');
  shown.add([more]);
  expect(shown.text).toBeUndefined();
});
