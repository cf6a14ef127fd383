import fc from 'fast-check';
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { expect, test } from 'vitest';
import { checkResponsesStream } from '../../../test/grammar/responses.ts';
import { inTier } from '../../../test/tier.ts';
import { streamed, whole } from '../../../test/wires/responses-encoder.ts';
import type { ChatChunk, Delta, Ext, ReasoningDetail, SlotEvent, Wire } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

const chunk = (n: number, delta: Delta, event: Omit<SlotEvent, 'n'> = {}): ChatChunk => ({
  delta,
  ext: { slot: { n, ...event } },
});
const cited = (startIndex: number, endIndex: number): ChatChunk => ({
  delta: {
    annotations: [
      {
        type: 'url_citation',
        url_citation: { url: 'https://a.example', start_index: startIndex, end_index: endIndex },
      },
    ],
  },
});
const own = (rest: JsonObject): Ext => ({ wire: 'openai-responses', rest });

interface Block {
  kind: 'text' | 'refusal' | 'reasoning' | 'summary' | 'call' | 'image' | 'native';
  wire: Wire;
  pieces: string[];
  is_own: boolean;
}

const block = fc.record<Block>({
  kind: fc.constantFrom('text', 'text', 'refusal', 'reasoning', 'summary', 'call', 'image', 'native'),
  wire: fc.constantFrom('openai-responses', 'anthropic-messages'),
  pieces: fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 }), { maxLength: 3 }),
  is_own: fc.boolean(),
});

/** The chunks of each block, and how often each is interrupted by the next. */
function chunksOfBlocks(blocks: readonly Block[]): ChatChunk[][] {
  const counts = { call: 0, detail: 0, n: 0 };
  let hasRefused = false;
  return blocks.flatMap(({ kind, wire, pieces, is_own }): ChatChunk[][] => {
    // A turn has at most one refusal, and an empty text is no block.
    if (kind === 'refusal' && (hasRefused || pieces.length === 0)) return [];
    hasRefused ||= kind === 'refusal';
    const n = counts.n;
    counts.n += 1;
    const ext = is_own ? { ext: own({ id: `${kind}_${n}` }) } : {};
    const slot = (deltas: Delta[], of: NonNullable<SlotEvent['open']>, end = ext): ChatChunk[] => [
      chunk(n, {}, { open: of }),
      ...deltas.map((delta) => chunk(n, delta)),
      chunk(n, {}, { close: end }),
    ];
    const format = is_own ? 'openai-responses-v1' : 'anthropic-claude-v1';
    switch (kind) {
      case 'text':
        return [
          slot(
            pieces.map((content) => ({ content })),
            { kind, ...ext },
          ),
        ];
      case 'refusal':
        return [
          slot(
            pieces.map((refusal) => ({ refusal })),
            { kind, ...ext },
          ),
        ];
      case 'reasoning':
      case 'summary': {
        const index = counts.detail;
        counts.detail += 1;
        const details = pieces.map(
          (piece): ReasoningDetail =>
            kind === 'summary'
              ? { type: 'reasoning.summary', summary: piece, format, index }
              : { type: 'reasoning.text', text: piece, format, index },
        );
        return [
          slot(
            details.map((one) => ({ reasoning_details: [one] })),
            { kind: 'reasoning', ...ext },
          ),
        ];
      }
      case 'call': {
        const index = counts.call;
        counts.call += 1;
        const opening: Delta = {
          tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'f', arguments: '' } }],
        };
        const args = pieces.map((piece): Delta => ({ tool_calls: [{ index, function: { arguments: piece } }] }));
        return [slot([opening, ...args], { kind, ...ext })];
      }
      case 'image': {
        const images = [{ type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } }];
        return [slot([{ images }], { kind, ...ext })];
      }
      default: {
        const native = {
          type: 'native' as const,
          wire,
          block: { type: 'web_search_call', id: `ws_${n}`, status: 'completed' },
        };
        return [slot([], { kind, native }, {})];
      }
    }
  });
}

/** Blocks open in order, and their chunks are interleaved. */
function mixed(blocks: readonly ChatChunk[][], turns: readonly number[]): ChatChunk[] {
  const rest = blocks.map((chunks) => [...chunks]);
  const out: ChatChunk[] = [];
  let opened = 0;
  for (let turn = 0; rest.some((chunks) => chunks.length > 0); turn += 1) {
    const ready = rest.flatMap((chunks, at) => (at <= opened && chunks.length > 0 ? [at] : []));
    const at = ready[(turns[turn % turns.length] ?? 0) % ready.length]!;
    if (at === opened) opened += 1;
    out.push(rest[at]!.shift()!);
  }
  return out;
}

test('any blocks, interleaved and cut anywhere, make a valid stream with the content of the whole answer', () => {
  fc.assert(
    fc.property(
      fc.array(block, { maxLength: 6 }),
      fc.array(fc.nat(6), { minLength: 1, maxLength: 20 }),
      fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 5 }),
      fc.constantFrom<ChatChunk['finish_reason']>('stop', 'length', 'content_filter', 'error', 'tool_calls'),
      fc.option(fc.tuple(fc.nat(20), fc.nat(20))),
      (blocks, turns, sizes, finishReason, place) => {
        // A citation after all blocks, of any text.
        const end: ChatChunk[] = [...(place === null ? [] : [cited(Math.min(...place), Math.max(...place))])];
        end.push({ delta: {}, finish_reason: finishReason } as ChatChunk);
        const chunks = [...mixed(chunksOfBlocks(blocks), turns), ...end];
        const groups: ChatChunk[][] = [];
        for (let at = 0, group = 0; at < chunks.length; group += 1) {
          const size = sizes[group % sizes.length]!;
          groups.push(chunks.slice(at, at + size));
          at += size;
        }
        const body = streamed(groups);
        expect(body).toBe(streamed([chunks]));
        const { events, response } = checkResponsesStream(body);
        // Blocks of one answer arrive in the order of their opening, interleaved or one after the other.
        expect(response).toEqual(whole([...chunksOfBlocks(blocks).flat(), ...end]));
        let official: Response | undefined;
        for (const event of events) {
          official = accumulateResponse(event as unknown as ResponseStreamEvent, official);
        }
        expect(official?.output).toEqual(response['output']);
      },
    ),
    { numRuns: inTier(125, 500) },
  );
});
