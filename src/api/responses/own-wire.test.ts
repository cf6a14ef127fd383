/** The stream of an upstream of this wire is passed on unchanged: kinds of items that no recording has. */
import { expect, test } from 'vitest';
import { checkResponsesStream } from '../../../test/grammar/responses.ts';
import { contextOf, generationId, streamed, whole } from '../../../test/wires/responses-encoder.ts';
import { openaiResponses } from '../../providers/openai-responses/index.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

function decode(events: readonly JsonObject[]): ChatChunk[] {
  const decoder = openaiResponses.createStreamDecoder({ generation_id: generationId });
  const chunks = events.flatMap((event) => decoder.push({ event: undefined, data: JSON.stringify(event) }));
  return [...chunks, ...decoder.end()];
}

const at = (itemId: string, more: JsonObject = {}): JsonObject => ({ output_index: 0, item_id: itemId, ...more });
const logprobs = [{ token: 'A', logprob: -0.1, top_logprobs: [] }];
const picture = { id: 'ig_1', type: 'image_generation_call', output_format: 'png' };
const custom = { id: 'ctc_1', type: 'custom_tool_call', call_id: 'call_1', name: 'shell' };
const message = { id: 'msg_1', type: 'message', role: 'assistant' };
/** The finished part alone has the bytes of its tokens (OpenAI's reference of the Response object). */
const likely = [{ token: 'A', logprob: -0.1, bytes: [65], top_logprobs: [] }];
const textPart = { type: 'output_text', annotations: [], logprobs: likely, text: 'A' };
const quoted = { type: 'file_citation', file_id: 'file_1', filename: 'a.pdf', index: 1 };
const refused = { type: 'refusal', refusal: 'No' };
const patch = {
  id: 'apc_1',
  type: 'apply_patch_call',
  call_id: 'call_2',
  operation: { type: 'delete_file', path: 'a' },
};

/** The events of one item between its opening and its end. */
const cases: [string, JsonObject, JsonObject[], JsonObject][] = [
  [
    'an image, with its partial images',
    { ...picture, status: 'in_progress', result: null },
    [
      { type: 'response.image_generation_call.in_progress', ...at('ig_1') },
      { type: 'response.image_generation_call.generating', ...at('ig_1') },
      {
        type: 'response.image_generation_call.partial_image',
        ...at('ig_1', { partial_image_index: 0, partial_image_b64: 'AA==' }),
      },
      { type: 'response.image_generation_call.completed', ...at('ig_1') },
    ],
    { ...picture, status: 'completed', result: 'BB==' },
  ],
  [
    'a call of a custom tool',
    { ...custom, status: 'in_progress', input: '' },
    [
      { type: 'response.custom_tool_call_input.delta', ...at('ctc_1', { delta: 'ls "' }) },
      { type: 'response.custom_tool_call_input.delta', ...at('ctc_1', { delta: '\\ é\n' }) },
      { type: 'response.custom_tool_call_input.done', ...at('ctc_1', { input: 'ls "\\ é\n' }) },
    ],
    { ...custom, status: 'completed', input: 'ls "\\ é\n' },
  ],
  [
    'a text with probabilities and file citations, and a refusal after it',
    { ...message, status: 'in_progress', content: [] },
    [
      {
        type: 'response.content_part.added',
        ...at('msg_1', { content_index: 0, part: { ...textPart, logprobs: [], text: '' } }),
      },
      { type: 'response.output_text.delta', ...at('msg_1', { content_index: 0, delta: 'A', logprobs }) },
      {
        type: 'response.output_text.annotation.added',
        ...at('msg_1', { content_index: 0, annotation_index: 0, annotation: quoted }),
      },
      { type: 'response.output_text.done', ...at('msg_1', { content_index: 0, text: 'A', logprobs }) },
      {
        type: 'response.content_part.done',
        ...at('msg_1', { content_index: 0, part: { ...textPart, annotations: [quoted] } }),
      },
      { type: 'response.content_part.added', ...at('msg_1', { content_index: 1, part: { ...refused, refusal: '' } }) },
      { type: 'response.refusal.delta', ...at('msg_1', { content_index: 1, delta: 'No' }) },
      { type: 'response.refusal.done', ...at('msg_1', { content_index: 1, refusal: 'No' }) },
      { type: 'response.content_part.done', ...at('msg_1', { content_index: 1, part: refused }) },
    ],
    { ...message, status: 'completed', content: [{ ...textPart, annotations: [quoted] }, refused] },
  ],
  [
    'an unknown kind of item',
    { ...patch, status: 'in_progress' },
    [{ type: 'response.apply_patch_call_operation_diff.delta', ...at('apc_1', { delta: '-a' }) }],
    { ...patch, status: 'completed' },
  ],
];

test.each(cases)('%s', (_what, opening, between, finished) => {
  const response = { id: 'resp_1', object: 'response', model: 'gpt', status: 'completed', output: [finished] };
  const events: JsonObject[] = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: opening },
    ...between,
    { type: 'response.output_item.done', output_index: 0, item: finished },
    { type: 'response.completed', response },
  ];
  const chunks = decode(events);
  const { events: sent, response: last } = checkResponsesStream(streamed([chunks]));
  const bare = sent.map(({ sequence_number: _, ...event }) => event);
  expect(bare.slice(2, -1)).toEqual(events.slice(1, -1));
  expect(last).toEqual(whole(chunks));
});

test('fields of the upstream are added to those of the gateway, and do not replace them', () => {
  const response = {
    id: 'resp_1',
    model: 'gpt-internal',
    status: 'completed',
    output: [],
    reasoning: { effort: 'medium', context: 'all_turns' },
    temperature: 0.7,
    top_p: 0.98,
    tools: [{ type: 'web_search' }],
    instructions: 'Of the operator.',
    billing: { payer: 'developer' },
  };
  const chunks = decode([{ type: 'response.completed', response }]);
  const context = contextOf({ temperature: 0.2, reasoning: { effort: 'high' } });
  const { response: sentResponse } = checkResponsesStream(streamed([chunks], context));
  expect(sentResponse).toMatchObject({
    id: generationId,
    model: 'maker/model',
    billing: { payer: 'developer' },
    temperature: 0.2,
    top_p: 0.98,
    reasoning: { effort: 'high', summary: null, context: 'all_turns' },
    tools: [],
    instructions: null,
  });
});

test('fields of the upstream with another type are not repeated', () => {
  const response = { id: 'resp_1', model: 'gpt', status: 'completed', output: [] };
  const odd = { reasoning: 'high', text: { format: null }, temperature: '1', top_p: null, truncation: {} };
  const chunks = decode([{ type: 'response.completed', response: { ...response, ...odd } }]);
  const { response: sentResponse } = checkResponsesStream(streamed([chunks]));
  expect(sentResponse).toMatchObject({
    reasoning: { effort: null, summary: null },
    text: { format: { type: 'text' } },
    temperature: 1,
    top_p: 1,
    truncation: 'disabled',
  });
});
