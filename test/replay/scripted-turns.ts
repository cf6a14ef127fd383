/** Answers of the chat wire, written for one case, and requests for them by each client API. */
import type { JsonObject } from '../../src/schemas/json.ts';
import { type Exchange, responseHead, type Step } from '../wires/wire-server.ts';
import { type ClientApi, paths } from './clients.ts';
import type { GroupRun, ReplayExchange } from './run-group.ts';

export interface Turn {
  /** The text, in the pieces of a stream. */
  text?: string[];
  calls?: { name: string; args: JsonObject }[];
  finish?: string;
  /** Not set if the provider reports no usage. */
  usage?: { prompt_tokens: number; completion_tokens: number };
}

const HEAD_MS = 100;
const REST_MS = 200;
const MODEL = 'case/model';
export const streamHead = responseHead(200, 'text/event-stream');

/** One event of a stream. */
export function event(delta: JsonObject | undefined, more: JsonObject = {}, finish: string | null = null): string {
  const choices = delta === undefined ? [] : [{ index: 0, delta, finish_reason: finish }];
  const chunk = { id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices, ...more };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

export const text = (...pieces: string[]): string => pieces.map((content) => event({ content })).join('');

const totalOf = (usage: NonNullable<Turn['usage']>): JsonObject => ({
  ...usage,
  total_tokens: usage.prompt_tokens + usage.completion_tokens,
});

/** The end of a complete stream. */
export function end({ finish = 'stop', usage }: Pick<Turn, 'finish' | 'usage'>): string {
  const last = usage === undefined ? '' : event(undefined, { usage: totalOf(usage) });
  return `${event({}, {}, finish)}${last}data: [DONE]\n\n`;
}

export const isStreamed = ({ body }: Exchange): boolean => (JSON.parse(body) as JsonObject)['stream'] === true;

export function failure(run: GroupRun, status: number): Step[] {
  const body = JSON.stringify({ error: { message: `scripted ${status}` } });
  return [run.pass(HEAD_MS), responseHead(status, 'application/json'), body, 'END'];
}

/** A turn in the form that the request wants. */
export function answer(run: GroupRun, exchange: Exchange, turn: Turn): Step[] {
  const { text: pieces = [], calls = [], finish = calls.length > 0 ? 'tool_calls' : 'stop', usage } = turn;
  const toolCalls = calls.map(({ name, args }, index) => ({
    index,
    id: `call_${index}_${calls.length}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }));
  if (!isStreamed(exchange)) {
    const content = pieces.length === 0 ? null : pieces.join('');
    const message = { role: 'assistant', content, ...(calls.length > 0 ? { tool_calls: toolCalls } : {}) };
    const whole = {
      id: 'up-1',
      object: 'chat.completion',
      created: 1,
      model: 'scripted',
      choices: [{ index: 0, message, finish_reason: finish }],
      ...(usage === undefined ? {} : { usage: totalOf(usage) }),
    };
    return [run.pass(HEAD_MS), responseHead(200, 'application/json'), run.pass(REST_MS), JSON.stringify(whole), 'END'];
  }
  const called = toolCalls.map((call) => event({ tool_calls: [call as unknown as JsonObject] })).join('');
  return [
    run.pass(HEAD_MS),
    streamHead,
    // Each is one read, because the cut of a stream depends on what arrives together.
    ...pieces.flatMap((piece) => [text(piece), run.pass(0)]),
    run.pass(REST_MS),
    called + end({ finish, ...(usage === undefined ? {} : { usage }) }),
    'END',
  ];
}

export interface TurnRequest {
  prompt: string;
  stream: boolean;
  max_tokens: number;
  /** An answer in JSON. */
  json?: boolean;
  more?: JsonObject;
}

/** The request of a case by one of the APIs with all fields that the cases need. */
export function requestOf(
  api: ClientApi,
  { prompt, stream, max_tokens, json, more }: TurnRequest,
): Pick<ReplayExchange, 'path' | 'body'> {
  const messages = [{ role: 'user', content: prompt }];
  const schema = { type: 'object', properties: { mail: { type: 'string' } }, required: ['mail'] };
  const shared = { model: MODEL, stream, ...more };
  const bodies: Record<ClientApi, JsonObject> = {
    chat: { messages, max_tokens, ...(json ? { response_format: { type: 'json_object' } } : {}) },
    responses: {
      input: prompt,
      max_output_tokens: max_tokens,
      ...(json ? { text: { format: { type: 'json_object' } } } : {}),
    },
    messages: { messages, max_tokens, ...(json ? { output_config: { format: { type: 'json_schema', schema } } } : {}) },
    completions: { prompt, max_tokens },
  };
  return { path: paths[api], body: { ...shared, ...bodies[api] } };
}
