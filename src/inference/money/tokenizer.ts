import { Worker } from 'node:worker_threads';
import { limits } from '../../limits.ts';
import type { Candidate } from '../../routing/plan.ts';

/** The timeout of a count, including the loading of the vocabulary. */
const TOKENIZER_MS_MAX = 2_000;

/** Counts tokens with a model's own tokenizer, if that is public. */
export interface Tokenizer {
  /** Undefined if the model's tokenizer is not known, or counting takes too long. Never rejects. */
  count(text: string, candidate: Candidate): Promise<number | undefined>;
  stop(): Promise<void>;
}

type Encoding = 'o200k_base' | 'cl100k_base';

/** GPT-3.5, GPT-4 up to Turbo and the embedding models have the older vocabulary (https://github.com/openai/tiktoken, `model.py`). */
const OLDER = /gpt-(?:3\.5|35|4(?:$|-turbo|-32k|-\d{4}))|text-embedding/;

function encodingOf({ model, endpoint }: Candidate): Encoding | undefined {
  if (model.tokenizer !== 'GPT') return undefined;
  return OLDER.test(endpoint.upstream_model) ? 'cl100k_base' : 'o200k_base';
}

/** Covers the error of splitting a text at long words: it counts a little more than the whole text, rarely less. */
const MARGIN = 1.02;

/** A tokenizer in a thread, which starts with the first count and counts one text after another. */
export function createTokenizer(): Tokenizer {
  let worker: Worker | undefined;
  let lastId = 0;
  const waiting = new Map<number, (tokens: number | undefined) => void>();
  const answer = (id: number, tokens: number | undefined) => {
    waiting.get(id)?.(tokens);
    waiting.delete(id);
  };
  const reset = (failed: Worker) => {
    if (worker !== failed) return;
    worker = undefined;
    for (const id of [...waiting.keys()]) answer(id, undefined);
  };
  const start = (): Worker => {
    const started = new Worker(new URL('./tokenizer-worker.js', import.meta.url), { execArgv: [] });
    started.unref();
    started.on('message', ({ id, tokens }: { id: number; tokens: number | undefined }) => answer(id, tokens));
    // The next count starts a new thread.
    started.on('error', () => reset(started));
    started.on('exit', () => reset(started));
    return started;
  };
  return {
    async count(text, candidate) {
      const encoding = encodingOf(candidate);
      const isLong = text.length > limits.tokenized_chars_max;
      if (encoding === undefined || isLong || waiting.size >= limits.tokenizer_waiting_max) return undefined;
      const id = ++lastId;
      const { promise, resolve } = Promise.withResolvers<number | undefined>();
      waiting.set(id, resolve);
      const late = setTimeout(answer, TOKENIZER_MS_MAX, id, undefined);
      worker ??= start();
      worker.postMessage({ id, encoding, text });
      const tokens = await promise;
      clearTimeout(late);
      return tokens === undefined ? undefined : Math.ceil(tokens * MARGIN);
    },
    async stop() {
      await worker?.terminate();
    },
  };
}
