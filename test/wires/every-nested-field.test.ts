/**
 * The members of the blocks, items and tools in the lists of `every-field.test.ts`: each one, with all the fields of
 * its official type, which the compiler ensures, reaches an upstream of its own wire with all of them.
 */
import type {
  BetaCacheControlEphemeral,
  BetaContentBlockSource,
  BetaImageBlockParam,
  BetaPlainTextSource,
  BetaRequestDocumentBlock,
  BetaSearchResultBlockParam,
  BetaTextBlockParam,
  BetaTextCitationParam,
  BetaTool,
  BetaToolReferenceBlockParam,
  BetaToolResultBlockParam,
  BetaToolUseBlockParam,
} from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type {
  CustomTool,
  EasyInputMessage,
  FunctionTool,
  NamespaceTool,
  ResponseCustomToolCall,
  ResponseCustomToolCallOutput,
  ResponseFunctionToolCall,
  ResponseInputFile,
  ResponseInputImage,
  ResponseInputItem,
  ResponseInputText,
  ResponseOutputMessage,
  ResponseOutputRefusal,
  ResponseOutputText,
  ResponseReasoningItem,
} from 'openai/resources/responses/responses';
import { Value } from 'typebox/value';
import { describe, expect, test } from 'vitest';
import { type MessagesRequestBody, messagesRequest } from '../../src/api/messages/parse-request.ts';
import { type ResponsesRequestBody, responsesRequest } from '../../src/api/responses/parse-request.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import type { DialectEndpoint } from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { ChatRequest, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { MessagesBody } from '../../src/schemas/messages.ts';
import { ResponsesBody } from '../../src/schemas/responses.ts';

const envelope = createEnvelopes('secret')('org');

function sent(wire: Wire, request: ChatRequest): JsonObject {
  const endpoint: DialectEndpoint = {
    model: 'a/b',
    provider: 'p',
    upstream_model: 'm',
    max_completion_tokens: 32_000,
    context_length: undefined,
    input_modalities: ['text', 'image', 'file'],
    quirks: {},
  };
  const { body, report } = dialects
    .get(wire)!
    .encodeRequest(request, endpoint, { media: new Map(), strip_state: false });
  expect(report).toEqual([]);
  return body;
}

// ---------------------------------------------------------------- the Messages API

const cacheControl: Required<BetaCacheControlEphemeral> = { type: 'ephemeral', ttl: '1h' };
const citations: { [Kind in BetaTextCitationParam['type']]: Required<Extract<BetaTextCitationParam, { type: Kind }>> } =
  {
    char_location: {
      type: 'char_location',
      cited_text: 'c',
      document_index: 0,
      document_title: 't',
      start_char_index: 0,
      end_char_index: 1,
    },
    page_location: {
      type: 'page_location',
      cited_text: 'c',
      document_index: 0,
      document_title: 't',
      start_page_number: 1,
      end_page_number: 2,
    },
    content_block_location: {
      type: 'content_block_location',
      cited_text: 'c',
      document_index: 0,
      document_title: 't',
      start_block_index: 0,
      end_block_index: 1,
    },
    web_search_result_location: {
      type: 'web_search_result_location',
      cited_text: 'c',
      encrypted_index: 'RUk=',
      title: 't',
      url: 'https://a.example',
    },
    search_result_location: {
      type: 'search_result_location',
      cited_text: 'c',
      search_result_index: 0,
      source: 's',
      title: 't',
      start_block_index: 0,
      end_block_index: 1,
    },
  };
const textFields: Omit<Required<BetaTextBlockParam>, 'citations'> = {
  type: 'text',
  text: 'Said',
  cache_control: cacheControl,
};
const textBlock: Required<BetaTextBlockParam> = { ...textFields, citations: Object.values(citations) };

const images: Record<BetaImageBlockParam['source']['type'], Required<BetaImageBlockParam>['source']> = {
  base64: { type: 'base64', media_type: 'image/png', data: 'AA==' },
  url: { type: 'url', url: 'https://a.example/x.png' },
  file: { type: 'file', file_id: 'file_1' },
};
const image = (source: BetaImageBlockParam['source']): Required<BetaImageBlockParam> => ({
  type: 'image',
  source,
  cache_control: cacheControl,
  transformations: {},
});
const plain: Required<BetaPlainTextSource> = { type: 'text', media_type: 'text/plain', data: 'Text' };
const parts: Required<BetaContentBlockSource> = { type: 'content', content: [{ type: 'text', text: 'Part' }] };
const documents: Record<BetaRequestDocumentBlock['source']['type'], BetaRequestDocumentBlock['source']> = {
  base64: { type: 'base64', media_type: 'application/pdf', data: 'AA==' },
  text: plain,
  content: parts,
  url: { type: 'url', url: 'https://a.example/x.pdf' },
  file: { type: 'file', file_id: 'file_1' },
};
const document = (source: BetaRequestDocumentBlock['source']): Required<BetaRequestDocumentBlock> => ({
  type: 'document',
  source,
  cache_control: cacheControl,
  citations: { enabled: true },
  context: 'c',
  title: 't',
});
const searchResult: Required<BetaSearchResultBlockParam> = {
  type: 'search_result',
  source: 's',
  title: 't',
  content: [textFields],
  cache_control: cacheControl,
  citations: { enabled: true },
};
const reference: Required<BetaToolReferenceBlockParam> = {
  type: 'tool_reference',
  tool_name: 'f',
  cache_control: cacheControl,
};
const use: Required<BetaToolUseBlockParam> = {
  type: 'tool_use',
  id: 'toolu_1',
  name: 'f',
  input: { a: [1, null] },
  cache_control: cacheControl,
  caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_1' },
  toolset_name: 's',
};
const result = (content: NonNullable<BetaToolResultBlockParam['content']>): Required<BetaToolResultBlockParam> => ({
  type: 'tool_result',
  tool_use_id: 'toolu_1',
  content,
  is_error: true,
  cache_control: cacheControl,
  toolset_name: 's',
});
const tool: Required<BetaTool> = {
  type: 'custom',
  name: 'f',
  description: 'Does it.',
  input_schema: { type: 'object', properties: { a: { type: 'string' } } },
  allowed_callers: ['direct'],
  cache_control: cacheControl,
  defer_loading: true,
  eager_input_streaming: true,
  input_examples: [{ a: 'x' }],
  strict: true,
};

const userBlocks: object[] = [
  textFields,
  ...Object.values(images).map(image),
  ...Object.values(documents).map(document),
  searchResult,
];

describe('of the Messages API', () => {
  const conversations: Record<string, object[]> = {
    'a user turn': [{ role: 'user', content: userBlocks }],
    'an assistant turn with every type of citation': [
      { role: 'user', content: 'Q' },
      { role: 'assistant', content: [textBlock] },
      { role: 'user', content: 'And?' },
    ],
    'a call and its result, with every type of part': [
      { role: 'user', content: 'Q' },
      { role: 'assistant', content: [use] },
      {
        role: 'user',
        content: [
          result([
            textFields,
            ...Object.values(images).map(image),
            ...Object.values(documents).map(document),
            searchResult,
            reference,
          ]),
        ],
      },
    ],
  };
  test.each(Object.entries(conversations))('%s', (_name, messages) => {
    const body = { model: 'a/b', max_tokens: 100, messages, system: [textFields], tools: [tool] };
    expect([...Value.Errors(MessagesBody, body)]).toEqual([]);
    const request = messagesRequest(body as unknown as MessagesRequestBody, { envelope, betas: [] });
    const { type: _, ...declared } = tool;
    expect(sent('anthropic-messages', request)).toMatchObject({ messages, system: [textFields], tools: [declared] });
  });
});

// ---------------------------------------------------------------- the Responses API

const promptCacheBreakpoint = { mode: 'explicit' } as const;
const text: Required<ResponseInputText> = {
  type: 'input_text',
  text: 'Said',
  prompt_cache_breakpoint: promptCacheBreakpoint,
};
const pictures: Partial<ResponseInputImage>[] = [{ image_url: 'https://a.example/x.png' }, { file_id: 'file_1' }];
const picture: Omit<Required<ResponseInputImage>, 'image_url' | 'file_id'> = {
  type: 'input_image',
  detail: 'high',
  prompt_cache_breakpoint: promptCacheBreakpoint,
};
const files: Partial<ResponseInputFile>[] = [
  { file_url: 'https://a.example/x.pdf' },
  { file_data: 'data:application/pdf;base64,AA==', filename: 't.pdf' },
  { file_id: 'file_1' },
];
const file: Omit<Required<ResponseInputFile>, 'file_url' | 'file_data' | 'file_id' | 'filename'> = {
  type: 'input_file',
  detail: 'high',
  prompt_cache_breakpoint: promptCacheBreakpoint,
};
const blocks = [text, ...pictures.map((one) => ({ ...picture, ...one })), ...files.map((one) => ({ ...file, ...one }))];

type Annotation = ResponseOutputText['annotations'][number];
const annotations: { [Kind in Annotation['type']]: Required<Extract<Annotation, { type: Kind }>> } = {
  url_citation: { type: 'url_citation', url: 'https://a.example', title: 't', start_index: 0, end_index: 1 },
  file_citation: { type: 'file_citation', file_id: 'file_1', filename: 'f', index: 0 },
  container_file_citation: {
    type: 'container_file_citation',
    container_id: 'c',
    file_id: 'file_1',
    filename: 'f',
    start_index: 0,
    end_index: 1,
  },
  file_path: { type: 'file_path', file_id: 'file_1', index: 0 },
};
const logprob = { token: 'A', logprob: -1, bytes: [65], top_logprobs: [] };
const output: Required<ResponseOutputText> = {
  type: 'output_text',
  text: 'Answer',
  annotations: Object.values(annotations),
  logprobs: [logprob],
};
const refusal: Required<ResponseOutputRefusal> = { type: 'refusal', refusal: 'No.' };
const message: Required<ResponseOutputMessage> = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  phase: 'commentary',
  content: [output, refusal],
};
const easy: Required<EasyInputMessage> = { type: 'message', role: 'user', phase: null, content: blocks as never };
const { phase: _phase, ...inputMessage } = easy;
const thought: Required<ResponseReasoningItem> = {
  type: 'reasoning',
  id: 'rs_1',
  summary: [{ type: 'summary_text', text: 'S' }],
  content: [{ type: 'reasoning_text', text: 'T' }],
  encrypted_content: 'RU5D',
  status: 'completed',
};
const { status: _status, ...thinking } = thought;
const caller = { type: 'program', caller_id: 'prog_1' } as const;
const call: Required<ResponseFunctionToolCall> = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_1',
  name: 'f',
  namespace: 'ns',
  arguments: '{"a":[1,null]}',
  status: 'completed',
  async: true,
  caller,
};
const answered: Omit<Required<ResponseInputItem.FunctionCallOutput>, 'name' | 'namespace'> = {
  type: 'function_call_output',
  id: 'fco_1',
  call_id: 'call_1',
  output: blocks as never,
  caller,
  status: 'completed',
};
const custom: Required<ResponseCustomToolCall> = {
  type: 'custom_tool_call',
  id: 'ctc_1',
  call_id: 'call_2',
  name: 'c',
  namespace: 'ns',
  input: 'Input',
  async: true,
  caller,
};
const customAnswered: Required<ResponseCustomToolCallOutput> = {
  type: 'custom_tool_call_output',
  id: 'ctco_1',
  call_id: 'call_2',
  output: blocks as never,
  caller,
};
const functionTool: Required<FunctionTool> = {
  type: 'function',
  name: 'f',
  description: 'Does it.',
  parameters: { type: 'object', properties: {} },
  strict: false,
  allowed_callers: ['direct'],
  async: true,
  defer_loading: true,
  output_schema: { type: 'object' },
};
const customTool: Required<CustomTool> = {
  type: 'custom',
  name: 'c',
  description: 'Free text.',
  allowed_callers: ['direct'],
  async: true,
  defer_loading: true,
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
};
const namespace: Required<NamespaceTool> = {
  type: 'namespace',
  name: 'ns',
  description: 'Some.',
  tools: [
    { ...functionTool, name: 'inside' },
    { ...customTool, name: 'other' },
  ],
};

test('of the Responses API, in items and tools', () => {
  const tools = [functionTool, customTool, namespace];
  const input = [
    inputMessage,
    thinking,
    message,
    call,
    custom,
    answered,
    customAnswered,
    { type: 'message', role: 'user', content: 'And?' },
  ];
  const body = { model: 'a/b', input, tools };
  expect([...Value.Errors(ResponsesBody, body)]).toEqual([]);
  const request = responsesRequest(body as unknown as ResponsesRequestBody, { envelope });
  const there = sent('openai-responses', request);
  expect(there['tools']).toEqual(tools);
  // Token probabilities of an earlier answer are not sent to a model.
  const { logprobs: _, ...kept } = output;
  expect(there['input']).toEqual(
    input.map((item) => (item === message ? { ...message, content: [kept, refusal] } : item)),
  );
});
