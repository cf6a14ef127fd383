import { expect } from 'vitest';
import type { TestGateway } from '../harness.ts';

/** An answer or a chunk, as a client reads it. */
export interface Answer {
  id: string;
  object: string;
  created: number;
  model: string;
  provider: string;
  choices: {
    index: number;
    finish_reason: string;
    native_finish_reason: string;
    message?: Record<string, unknown>;
    text?: string;
  }[];
  usage: Record<string, unknown> & {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    cost: number;
  };
  gateway_metadata?: Record<string, unknown> & { attempts: unknown[]; adjusted_parameters: unknown[] };
  error?: { code: number; message: string; metadata: Record<string, unknown> | null };
}

/** Calls the chat operation of a gateway. */
export function chatClient(gateway: () => TestGateway) {
  async function post(
    body: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; answer: Answer; headers: Headers }> {
    const response = await gateway().call('POST', '/chat/completions', body, headers);
    return { status: response.status, answer: (await response.json()) as Answer, headers: response.headers };
  }

  /** The events of a stream: comments unchanged, data parsed. */
  async function stream(
    body: object,
    headers?: Record<string, string>,
  ): Promise<{ comments: string[]; chunks: Answer[]; done: boolean }> {
    const response = await gateway().call('POST', '/chat/completions', { ...body, stream: true }, headers);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const events = (await response.text()).split('\n\n').filter((event) => event !== '');
    const data = events.filter((event) => event.startsWith('data: ')).map((event) => event.slice('data: '.length));
    return {
      comments: events.filter((event) => event.startsWith(':')),
      chunks: data.filter((text) => text !== '[DONE]').map((text) => JSON.parse(text) as Answer),
      done: data.at(-1) === '[DONE]',
    };
  }

  return { post, stream };
}
