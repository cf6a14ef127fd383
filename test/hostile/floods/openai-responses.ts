import type { JsonObject, JsonValue } from '../../../src/schemas/json.ts';
import { type Flood, frames, times, URL } from './flood.ts';

const responsesUsage = { input_tokens: 3, output_tokens: 5, total_tokens: 8 };
const responseOf = (output: JsonValue[]): JsonObject => ({
  id: 'resp',
  object: 'response',
  status: 'completed',
  model: 'm',
  output,
  usage: responsesUsage,
});

function responses(parts: string, events: (n: number) => JsonObject[], output?: (n: number) => JsonValue[]): Flood {
  return {
    wire: 'openai-responses',
    parts,
    stream: (n) =>
      frames([
        { type: 'response.created', response: { id: 'resp', status: 'in_progress', output: [] } },
        ...events(n),
        { type: 'response.completed', response: responseOf(output?.(n) ?? []) },
      ]),
    ...(output === undefined ? {} : { whole: (n) => responseOf(output(n)) }),
  };
}

function responsesItems(parts: string, item: (i: number) => JsonObject): Flood {
  return responses(
    parts,
    (n) =>
      times(n, (outputIndex): JsonObject[] => [
        { type: 'response.output_item.added', output_index: outputIndex, item: item(outputIndex) },
        { type: 'response.output_item.done', output_index: outputIndex, item: item(outputIndex) },
      ]).flat(),
    (n) => times(n, item),
  );
}

const responsesAnnotation = (i: number): JsonObject => ({
  type: 'url_citation',
  url: `${URL}${i}`,
  title: 't',
  start_index: 0,
  end_index: 1,
});
const responsesText = (i: number, annotations: JsonValue[] = []): JsonObject => ({
  type: 'message',
  id: `msg_${i}`,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'a', annotations }],
});
const responsesFile = (i: number): JsonObject =>
  i % 2 === 0
    ? { type: 'file_citation', file_id: `f${i}`, filename: 'f', index: 0 }
    : {
        type: 'container_file_citation',
        container_id: 'c',
        file_id: `f${i}`,
        filename: 'f',
        start_index: 0,
        end_index: 1,
      };
/** One item grows. */
function responsesPieces(parts: string, item: JsonObject, piece: (i: number) => JsonObject): Flood {
  return responses(parts, (n) => [
    { type: 'response.output_item.added', output_index: 0, item },
    ...times(n, (i) => ({ output_index: 0, item_id: item['id'] ?? null, ...piece(i) })),
  ]);
}
/** Answers of the wire `openai-responses`. */
export const responsesFloods: readonly Flood[] = [
  responsesItems('calls', (i) => ({
    type: 'function_call',
    id: `fc_${i}`,
    call_id: `call_${i}`,
    name: 'f',
    arguments: '{}',
  })),
  responsesItems('messages', (i) => responsesText(i)),
  responsesItems('messages without ids', () => ({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'a' }],
  })),
  responsesItems('cited messages', (i) => responsesText(i, [responsesAnnotation(i)])),
  responsesItems('reasoning', (i) => ({
    type: 'reasoning',
    id: `rs_${i}`,
    summary: [{ type: 'summary_text', text: 'a' }],
    encrypted_content: 'e',
  })),
  responsesItems('reasoning without ids', (i) => ({
    type: 'reasoning',
    [`field_${i}`]: i,
    summary: [{ type: 'summary_text', text: 'a' }],
  })),
  responsesItems('items of its own', (i) => ({
    type: 'web_search_call',
    id: `ws_${i}`,
    status: 'completed',
    action: { type: 'search', query: 'q' },
  })),
  responsesItems('pictures', (i) => ({
    type: 'image_generation_call',
    id: `ig_${i}`,
    status: 'completed',
    result: 'QQ==',
  })),
  responses(
    'annotations of one text',
    (n) => [
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'message', id: 'msg', role: 'assistant', content: [] },
      },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'a' },
      ...times(n, (i) => ({
        type: 'response.output_text.annotation.added',
        output_index: 0,
        content_index: 0,
        annotation_index: i,
        annotation: responsesAnnotation(i),
      })),
    ],
    (n) => [responsesText(0, times(n, responsesAnnotation))],
  ),
  responses(
    'parts of one message with many fields',
    () => [],
    (n) => [
      {
        ...responsesText(0),
        ...Object.fromEntries(times(n, (i) => [`field_${i}`, i])),
        content: times(n, (i) => ({ type: 'output_text', text: 'a', annotations: [], [`own_${i}`]: i })),
      },
    ],
  ),
  responses(
    'parts of one summary',
    (n) => [
      { type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning', id: 'rs', summary: [] } },
      ...times(n, (i) => ({
        type: 'response.reasoning_summary_text.delta',
        output_index: 0,
        summary_index: i,
        delta: 'a',
      })),
    ],
    (n) => [{ type: 'reasoning', id: 'rs', summary: times(n, () => ({ type: 'summary_text', text: 'a' })) }],
  ),
  responsesPieces(
    'pieces of a call',
    { type: 'function_call', id: 'fc', call_id: 'call', name: 'f', arguments: '' },
    (i) => ({ type: 'response.function_call_arguments.delta', delta: i === 0 ? '{"a":"}' : '}' }),
  ),
  responsesPieces(
    'pieces of the input of a custom tool',
    { type: 'custom_tool_call', id: 'ctc', call_id: 'call', name: 'f', input: '' },
    () => ({ type: 'response.custom_tool_call_input.delta', delta: 'a' }),
  ),
  responsesPieces(
    'pieces of a text with probabilities',
    { type: 'message', id: 'msg', role: 'assistant', content: [] },
    () => ({
      type: 'response.output_text.delta',
      content_index: 0,
      delta: 'a',
      logprobs: [{ token: 'a', logprob: -1, bytes: [97], top_logprobs: [] }],
    }),
  ),
  responsesPieces('pieces of a refusal', { type: 'message', id: 'msg', role: 'assistant', content: [] }, () => ({
    type: 'response.refusal.delta',
    content_index: 0,
    delta: 'a',
  })),
  responsesPieces('pieces of a reasoning text', { type: 'reasoning', id: 'rs', summary: [], content: [] }, () => ({
    type: 'response.reasoning_text.delta',
    content_index: 0,
    delta: 'a',
  })),
  responses(
    'files that one text cites',
    (n) => [
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'message', id: 'msg', role: 'assistant', content: [] },
      },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'a' },
      ...times(n, (i) => ({
        type: 'response.output_text.annotation.added',
        output_index: 0,
        content_index: 0,
        annotation_index: i,
        annotation: responsesFile(i),
      })),
    ],
    (n) => [responsesText(0, times(n, responsesFile))],
  ),
  responsesItems('calls of a server of tools', (i) => ({
    type: 'mcp_call',
    id: `mcp_${i}`,
    server_label: 's',
    name: 'f',
    arguments: '{}',
    output: 'a',
  })),
  responses('calls that are open at once', (n) => [
    ...times(n, (outputIndex) => ({
      type: 'response.output_item.added',
      output_index: outputIndex,
      item: {
        type: 'function_call',
        id: `fc_${outputIndex}`,
        call_id: `call_${outputIndex}`,
        name: 'f',
        arguments: '',
      },
    })),
    ...times(n, (outputIndex) => ({
      type: 'response.function_call_arguments.delta',
      output_index: outputIndex,
      delta: '{}',
    })),
    ...times(n, (outputIndex) => ({
      type: 'response.output_item.done',
      output_index: outputIndex,
      item: {
        type: 'function_call',
        id: `fc_${outputIndex}`,
        call_id: `call_${outputIndex}`,
        name: 'f',
        arguments: '{}',
      },
    })),
  ]),
];
