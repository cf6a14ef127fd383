import { expect, test } from 'vitest';
import { GatewayError } from '../errors.ts';
import { accumulate } from '../schemas/accumulate.ts';
import type { ChatChunk } from '../schemas/inner.ts';
import type { Call } from './call.ts';
import type { Engine, Inference } from './create-inference.ts';
import type { StreamEvent } from './events.ts';
import { NO_USAGE } from './money/answer-usage.ts';
import { type CallHooks, createPipeline, type Middleware } from './pipeline.ts';
import type { AnswerTransform } from './transform.ts';

const call = { request: {}, stages: [] } as unknown as Call;
const say = (content: string): StreamEvent => ({ type: 'chunks', chunks: [{ delta: { content } }] });
const open = { type: 'open', served: { model: 'm', provider: 'p' }, upstream_bodies: [] } as StreamEvent;
const end = (error?: GatewayError): StreamEvent => ({
  type: 'end',
  usage: NO_USAGE,
  classes: null,
  metadata: undefined,
  error,
});

/** An engine that emits these events and notes how it was closed. */
function engineOf(events: readonly StreamEvent[], notes: string[] = []): Engine {
  async function* course(): AsyncGenerator<StreamEvent, void, undefined> {
    try {
      for (const event of events) yield event;
    } catch (error) {
      notes.push(`engine: ${(error as Error).message}`);
      yield end(new GatewayError(500, 'Internal error'));
    } finally {
      notes.push('engine: closed');
    }
  }
  const chunks = events.flatMap((event) => (event.type === 'chunks' ? event.chunks : []));
  return {
    stream: course,
    complete: async () => ({ completion: accumulate(chunks, 0), metadata: undefined }),
  } as unknown as Engine;
}

/** A transform that holds back the chunks of the last event and appends its name to each text. */
function marking(name: string): AnswerTransform {
  let held: ChatChunk[] = [];
  const marked = (chunks: ChatChunk[]) =>
    chunks.map((chunk): ChatChunk => {
      const { content } = chunk.delta;
      return content == null ? chunk : { ...chunk, delta: { content: `${content}${name}` } };
    });
  const flush = () => {
    const out = marked(held);
    held = [];
    return out;
  };
  return {
    refusal: undefined,
    take(chunks) {
      const out = flush();
      held = chunks;
      return out;
    },
    reopen: flush,
    end: flush,
    hasChanged: () => true,
  };
}

function middleware(name: string, hooks: CallHooks, notes: string[] = []): Middleware {
  return {
    name,
    begin() {
      notes.push(`${name}: begin`);
      return hooks;
    },
  };
}

/** The stream as a client sees it, each event as one word. */
async function seen(inference: Inference): Promise<string[]> {
  const words: string[] = [];
  for await (const event of inference.stream(call)) {
    words.push(event.type === 'chunks' ? event.chunks.map(({ delta }) => delta.content).join('|') : event.type);
  }
  return words;
}

test('a call without middleware hooks gets the engine’s own event objects', async () => {
  const events = [open, say('a'), end()];
  const inference = createPipeline(engineOf(events), [{ name: 'idle', begin: () => undefined }]);
  let read = 0;
  for await (const event of inference.stream(call)) {
    expect(event).toBe(events[read]);
    read += 1;
  }
  expect(read).toBe(events.length);
});

test('requests pass the middleware in order and answers in reverse, and each middleware begins once per call', async () => {
  const notes: string[] = [];
  const noting = (name: string): CallHooks => ({
    onRequest(request) {
      notes.push(`${name}: request`);
      return request;
    },
    createTransform: () => marking(name),
    onEnd: () => void notes.push(`${name}: end`),
  });
  const list = ['1', '2'].map((name) => middleware(name, noting(name), notes));
  const inference = createPipeline(engineOf([open, say('a'), say('b'), end()], notes), list);
  expect(await seen(inference)).toEqual(['open', 'a21|b21', 'end']);
  const order = ['1: begin', '1: request', '2: begin', '2: request', 'engine: closed', '2: end', '1: end'];
  expect(notes).toEqual(order);
  const { completion } = await inference.complete(call);
  expect(completion.choices[0].message.content).toBe('ab21');
});

test('chunks that a transform holds back are emitted before another endpoint continues and before the end', async () => {
  const list = [middleware('x', { createTransform: () => marking('x') })];
  const inference = createPipeline(engineOf([open, say('a'), open, say('b'), end()]), list);
  expect(await seen(inference)).toEqual(['open', 'ax', 'open', 'bx', 'end']);
});

test('an event that the reader cannot encode ends the call as failed, and the error event is still encoded', async () => {
  const notes: string[] = [];
  const ends: unknown[] = [];
  const hooks: CallHooks = {
    onError: (error, place) => error.with({ message: `${error.message}, shown (${place})` }),
    onEnd: (one) => void ends.push(one),
  };
  const events = createPipeline(engineOf([open, say('a'), end()], notes), [middleware('x', hooks)]).stream(call);
  await events.next();
  const { value } = await events.throw(new Error('no text for it'));
  expect(value).toMatchObject({ type: 'end', error: { message: 'Internal error, shown (end)' } });
  expect(await events.next()).toEqual({ done: true, value: undefined });
  expect(notes).toEqual(['engine: no text for it', 'engine: closed']);
  expect(ends).toMatchObject([{ error: { message: 'Internal error, shown (end)' } }]);
});

test('a reader that stops closes the engine, and every onEnd hook runs once', async () => {
  const notes: string[] = [];
  const list = ['1', '2'].map((name) => middleware(name, { onEnd: () => void notes.push(`${name}: end`) }));
  const events = createPipeline(engineOf([open, say('a'), end()], notes), list).stream(call);
  await events.next();
  await events.return();
  expect(notes).toEqual(['engine: closed', '2: end', '1: end']);
});

test('a request that a middleware refuses reaches neither the engine nor the next middleware', async () => {
  const notes: string[] = [];
  const refusing = middleware('1', {
    onRequest() {
      throw new GatewayError(403, 'Blocked');
    },
    onEnd: (one) => void notes.push(`1: ${(one.error as Error).message}`),
  });
  const inference = createPipeline(engineOf([open], notes), [refusing, middleware('2', {}, notes)]);
  await expect(inference.complete(call)).rejects.toThrow('Blocked');
  const events = inference.stream(call);
  await expect(events.next()).rejects.toThrow('Blocked');
  expect(notes).toEqual(['1: Blocked', '1: Blocked']);
});
