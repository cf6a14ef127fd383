import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One turn of a scripted model: its text, its calls, and its failure. */
export interface ScriptedTurn {
  text?: string;
  calls?: { name: string; args: unknown }[];
  finish_reason?: string;
  /** An error instead of the turn. */
  status?: number;
  /** The connection breaks after the text. */
  dies?: true;
  annotations?: unknown[];
}

/** A chat completions request, as the upstream receives it. */
export interface ScriptedRequest {
  stream?: boolean;
  messages: { role: string; content: string; tool_calls?: { id: string }[]; tool_call_id?: string }[];
  tools?: { function: { name: string } }[];
  tool_choice?: unknown;
  max_tokens?: number;
}

/** A model that speaks the chat wire and follows a script. */
export interface ScriptedModel {
  /** For a provider's `base_url`. */
  url: string;
  readonly requests: ScriptedRequest[];
  /** The answer to the nth request, from 0. */
  script: (request: ScriptedRequest, nth: number) => ScriptedTurn | Promise<ScriptedTurn>;
  /** Forgets its requests, and follows these turns. */
  follow(...turns: ScriptedTurn[]): void;
  stop(): Promise<void>;
}

/** The reported usage of every turn. */
export const TURN_USAGE = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };

function answer(response: ServerResponse, turn: ScriptedTurn, stream: boolean, nth: number): void {
  const { text = '', calls = [], status, annotations } = turn;
  if (status !== undefined) {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: 'scripted', type: 'server_error' } }));
    return;
  }
  const finishReason = turn.finish_reason ?? (calls.length > 0 ? 'tool_calls' : 'stop');
  const toolCalls = calls.map(({ name, args }, index) => ({
    index,
    id: `call_${nth}_${index}`,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
  }));
  const head = { id: `up-${nth}`, created: 1, model: 'scripted' };
  if (!stream) {
    const message = {
      role: 'assistant',
      content: text === '' ? null : text,
      ...(calls.length > 0 ? { tool_calls: toolCalls } : {}),
      ...(annotations === undefined ? {} : { annotations }),
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    const body = {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: finishReason }],
      usage: TURN_USAGE,
    };
    response.end(JSON.stringify(body));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (delta: object, finish: string | null = null) =>
    response.write(`data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
  // In pieces of three characters, so that links are split.
  for (let at = 0; at < text.length; at += 3) send({ content: text.slice(at, at + 3) });
  if (turn.dies) {
    setTimeout(() => response.destroy(), 20);
    return;
  }
  if (annotations !== undefined) send({ annotations });
  for (const { index, function: called, ...call } of toolCalls) {
    send({ tool_calls: [{ index, ...call, function: { name: called.name, arguments: '' } }] });
    const half = Math.ceil(called.arguments.length / 2);
    for (const piece of [called.arguments.slice(0, half), called.arguments.slice(half)]) {
      send({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }
  send({}, finishReason);
  response.write(`data: ${JSON.stringify({ ...head, choices: [], usage: TURN_USAGE })}\n\n`);
  response.end('data: [DONE]\n\n');
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of request.setEncoding('utf8')) text += piece;
  return text;
}

/** Starts it on a free port of this machine. */
export async function startScriptedModel(): Promise<ScriptedModel> {
  const requests: ScriptedRequest[] = [];
  const server = createServer((request, response) => {
    void textOf(request).then(async (text) => {
      const body = JSON.parse(text) as ScriptedRequest;
      const nth = requests.push(body) - 1;
      answer(response, await model.script(body, nth), body.stream === true, nth);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const model: ScriptedModel = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    script: () => ({ text: 'Done' }),
    follow(...turns) {
      requests.length = 0;
      model.script = (_request, nth) => turns[nth] ?? { text: 'The script is over' };
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return model;
}
