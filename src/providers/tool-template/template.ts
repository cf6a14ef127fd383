import { GatewayError, invalidField } from '../../errors.ts';
import type { ChatRequest, FunctionTool, InnerPart, InnerTool, Message, ToolCall } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Report } from '../dialect.ts';
import { allowedMode, allowedTools } from '../shared/allowed-tools.ts';
import { parseArguments } from '../shared/arguments.ts';
import { asObject } from '../shared/json-shape.ts';
import { CALL_CLOSE, CALL_OPEN, insideMarkup, RESULT_CLOSE, RESULT_OPEN, type ToolTemplate } from './markup.ts';

/** All descriptions of tools in a prompt, for endpoints without native tools. */
const TOOL_TEMPLATE_CHARS_MAX = 400_000;

/** A request whose tools are described as text. */
export interface TemplatedRequest {
  request: ChatRequest;
  /** For the reader of the answer; undefined if no call is expected: the answer is not parsed. */
  template: ToolTemplate | undefined;
  report: Report[];
}

const TOOLS_REASON =
  'this endpoint has no native tools: they are described in the prompt, and calls are read from its text';

function isFunction(tool: InnerTool): tool is FunctionTool {
  return tool.type === 'function';
}

/** Whether a request has tools, or calls and results of former turns, which an endpoint without native tools does not accept. */
export function needsTemplate({ tools, messages }: ChatRequest): boolean {
  return (
    tools?.some(isFunction) === true ||
    messages.some(({ role, tool_calls: toolCalls }) => role === 'tool' || (toolCalls?.length ?? 0) > 0)
  );
}

/** The tools that may be called, and how. */
interface ToolPolicy {
  tools: readonly FunctionTool[];
  mode: 'auto' | 'required' | 'none';
  is_single: boolean;
}

function toolPolicyOf({ tools, tool_choice: choice, parallel_tool_calls: parallelToolCalls }: ChatRequest): ToolPolicy {
  const functions = (tools ?? []).filter(isFunction);
  const isSingle = parallelToolCalls === false;
  if (choice === 'none' || functions.length === 0) return { tools: [], mode: 'none', is_single: isSingle };
  if (choice === 'required') return { tools: functions, mode: 'required', is_single: isSingle };
  const allowed = allowedTools(choice);
  if (allowed !== undefined) {
    const left = functions.filter((tool) => allowed.has(tool.function.name));
    if (left.length === 0) return { tools: [], mode: 'none', is_single: isSingle };
    return { tools: left, mode: allowedMode(choice) ?? 'auto', is_single: isSingle };
  }
  if (typeof choice === 'object' && choice?.type === 'function') {
    const name = asObject((choice as JsonObject)['function'])?.['name'];
    const forced = functions.filter((tool) => tool.function.name === name);
    if (forced.length === 0) throw invalidField('tool_choice', 'must name a function of tools');
    return { tools: forced, mode: 'required', is_single: isSingle };
  }
  return { tools: functions, mode: 'auto', is_single: isSingle };
}

/** One line of JSON for each tool. Throws `GatewayError` 400 if they are too long together for a prompt. */
function toolLines(tools: readonly FunctionTool[]): string {
  const lines = tools.map(({ function: { name, description, parameters } }) =>
    insideMarkup(
      JSON.stringify({
        name,
        ...(description == null ? {} : { description }),
        parameters: parameters ?? { type: 'object', properties: {} },
      }),
    ),
  );
  const text = lines.join('\n');
  if (text.length <= TOOL_TEMPLATE_CHARS_MAX) return text;
  throw new GatewayError(
    400,
    `tools: this model's provider has no native tools, and the descriptions of these are too long for its prompt (${text.length} characters, at most ${TOOL_TEMPLATE_CHARS_MAX}): send fewer or shorter ones, or name a model with native tools`,
    {
      metadata: {
        violations: [{ path: 'tools', rule: `must be at most ${TOOL_TEMPLATE_CHARS_MAX} characters` }],
      },
    },
  );
}

function instructions({ tools, mode, is_single: isSingle }: ToolPolicy): string {
  const [only] = tools;
  const must = tools.length === 1 ? `the tool ${JSON.stringify(only!.function.name)}` : 'at least one of these tools';
  return [
    'You can call tools. Each line below describes one tool: its name, what it does, and the JSON schema of its arguments.',
    `<tools>\n${toolLines(tools)}\n</tools>`,
    'To call a tool, write its name and its arguments as one JSON object between these tags:',
    `${CALL_OPEN}\n{"name": "the name of the tool", "arguments": {"name of an argument": "its value"}}\n${CALL_CLOSE}`,
    isSingle
      ? 'Call at most one tool in an answer.'
      : 'To call several tools in one answer, write one such block for each call, one after another.',
    `End your answer after the calls. The results are in the next message, each between ${RESULT_OPEN} and ${RESULT_CLOSE}; never write these yourself.`,
    mode === 'required'
      ? `In this answer you must call ${must}: start it with ${CALL_OPEN}.`
      : 'Call a tool only where it helps; otherwise answer as usual, without these tags.',
  ].join('\n');
}

/** The answer format as an instruction: a model that is constrained to JSON cannot write calls. */
function formatLine({ response_format: format }: ChatRequest): string | undefined {
  if (format == null || format.type === 'text') return undefined;
  const jsonSchema = asObject((format as JsonObject)['json_schema']);
  const schema = asObject(jsonSchema?.['schema']);
  const start = 'An answer that calls no tool must be one JSON value, without anything before or after it';
  return schema === undefined ? `${start}.` : `${start}, of this JSON schema: ${insideMarkup(JSON.stringify(schema))}`;
}

type Content = Message['content'];

function joined(first: Content, second: Content): string | InnerPart[] {
  if (first == null || first.length === 0) return second ?? '';
  if (second == null || second.length === 0) return first;
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`;
  const parts = (content: string | InnerPart[]): InnerPart[] =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return [...parts(first), ...parts(second)];
}

function callText({ function: { name, arguments: text } }: ToolCall): string {
  const { isObject } = parseArguments(text);
  // As the model wrote them if they are an object.
  const args = text.trim() === '' ? '{}' : isObject ? text.trim() : JSON.stringify(text);
  return `${CALL_OPEN}\n${insideMarkup(`{"name": ${JSON.stringify(name)}, "arguments": ${args}}`)}\n${CALL_CLOSE}`;
}

/** A turn of the model with its calls as it would have written them. Its order of blocks is that of the text. */
function assistantText({ tool_calls: toolCalls, ext: _, ...message }: Message): Message {
  const calls = (toolCalls ?? []).map(callText).join('\n');
  return { ...message, content: joined(message.content, calls) };
}

function resultParts({ content }: Message, name: string | undefined): { text: string; media: InnerPart[] } {
  const parts = typeof content === 'string' || content == null ? [] : content;
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const result = typeof content === 'string' ? content : texts.join('\n');
  const json = JSON.stringify({ ...(name === undefined ? {} : { name }), result });
  return {
    text: `${RESULT_OPEN}\n${insideMarkup(json)}\n${RESULT_CLOSE}`,
    media: parts.filter(({ type }) => type !== 'text'),
  };
}

/** The results of one turn as one user message, in the order of the calls that they answer. */
function resultsMessage(results: readonly Message[], calls: readonly ToolCall[]): Message {
  const positions = new Map(calls.map(({ id }, at) => [id, at]));
  const position = ({ tool_call_id: toolCallId }: Message) => positions.get(toolCallId ?? '') ?? calls.length;
  const rendered = results
    .toSorted((a, b) => position(a) - position(b))
    .map((one) => resultParts(one, calls[position(one)]?.function.name ?? one.name));
  const text = rendered.map((one) => one.text).join('\n');
  const media = rendered.flatMap((one) => one.media);
  return { role: 'user', content: media.length === 0 ? text : [{ type: 'text', text }, ...media] };
}

/** The conversation with calls and results as text. Results and the following user message are one message: many templates require alternating turns. */
function conversation(messages: readonly Message[]): Message[] {
  const converted: Message[] = [];
  let calls: readonly ToolCall[] = [];
  for (let at = 0; at < messages.length; at += 1) {
    const message = messages[at]!;
    if (message.role === 'tool') {
      let end = at + 1;
      while (messages[end]?.role === 'tool') end += 1;
      const results = resultsMessage(messages.slice(at, end), calls);
      const next = messages[end];
      if (next?.role === 'user') {
        converted.push({ ...next, content: joined(results.content, next.content) });
        at = end;
      } else {
        converted.push(results);
        at = end - 1;
      }
    } else if (message.role === 'assistant' && message.tool_calls != null && message.tool_calls.length > 0) {
      calls = message.tool_calls;
      converted.push(assistantText(message));
    } else {
      converted.push(message);
    }
  }
  return converted;
}

function withSystem(messages: readonly Message[], text: string): Message[] {
  const [first, ...rest] = messages;
  if (first?.role === 'system' || first?.role === 'developer') {
    return [{ ...first, content: joined(first.content, text) }, ...rest];
  }
  return [{ role: 'system', content: text }, ...messages];
}

/**
 * The request for an endpoint without native tools: its functions are described in the prompt, and calls and results of former
 * turns are text. Tools that are no functions stay, for the dialect to decide. Throws `GatewayError` 400 if the descriptions are too
 * long for a prompt.
 */
export function templated(request: ChatRequest): TemplatedRequest {
  const { tools, tool_choice: choice, parallel_tool_calls: _, ...rest } = request;
  const policy = toolPolicyOf(request);
  const natives = (tools ?? []).filter((tool) => !isFunction(tool));
  const report: Report[] = [];
  if (tools?.some(isFunction)) report.push({ kind: 'changed', field: 'tools', reason: TOOLS_REASON });
  const converted: ChatRequest = { ...rest, messages: conversation(request.messages) };
  if (natives.length > 0) {
    converted.tools = natives;
    const isOfNative = typeof choice === 'object' && choice !== null && choice.type !== 'function';
    if (choice != null && isOfNative && choice.type !== 'allowed_tools') converted.tool_choice = choice;
  }
  if (policy.mode === 'none') {
    const hasCalls = request.messages.some(({ tool_calls: toolCalls }) => (toolCalls?.length ?? 0) > 0);
    if (hasCalls)
      converted.messages = withSystem(converted.messages, 'Call no tools in this answer: answer in plain text.');
    return { request: converted, template: undefined, report };
  }
  const format = formatLine(request);
  if (format !== undefined) {
    delete converted.response_format;
    const reason =
      'the endpoint has no native tools, and an answer in an enforced format cannot call any: the prompt requests the format';
    report.push({ kind: 'changed', field: 'response_format', reason });
  }
  const text = instructions(policy);
  converted.messages = withSystem(converted.messages, format === undefined ? text : `${text}\n${format}`);
  const template: ToolTemplate = {
    names: policy.tools.map((tool) => tool.function.name),
    is_forced: policy.mode === 'required',
    is_single: policy.is_single,
  };
  return { request: converted, template, report };
}
