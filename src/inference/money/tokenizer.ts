import { Worker } from 'node:worker_threads';
import { limits } from '../../limits.ts';
import type { Candidate } from '../../routing/plan.ts';

/** Counts tokens as a model's own tokenizer does, where that is public. */
export interface Tokenizer {
  /** Undefined where the model's tokenizer is not known, or where counting would take too long. Never rejects. */
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

/** A text split at long words counts a little more than whole, hardly ever less: this much covers it. */
const MARGIN = 1.02;

/** Makes a tokenizer whose thread starts with the first count, and counts one text after another. */
export function createTokenizer(): Tokenizer {
  let worker: Worker | undefined;
  let last_id = 0;
  const waiting = new Map<number, (tokens: number | undefined) => void>();
  const answer = (id: number, tokens: number | undefined) => {
    waiting.get(id)?.(tokens);
    waiting.delete(id);
  };
  const end = (ended: Worker) => {
    if (worker !== ended) return;
    worker = undefined;
    for (const id of [...waiting.keys()]) answer(id, undefined);
  };
  const start = (): Worker => {
    const started = new Worker(new URL('./tokenizer-worker.js', import.meta.url), { execArgv: [] });
    started.unref();
    started.on('message', ({ id, tokens }: { id: number; tokens: number | undefined }) => answer(id, tokens));
    // A thread that died is started anew for the next count.
    started.on('error', () => end(started));
    started.on('exit', () => end(started));
    return started;
  };
  return {
    async count(text, candidate) {
      const encoding = encodingOf(candidate);
      const is_long = text.length > limits.tokenized_chars_max;
      if (encoding === undefined || is_long || waiting.size >= limits.tokenizer_waiting_max) return undefined;
      const id = ++last_id;
      const { promise, resolve } = Promise.withResolvers<number | undefined>();
      waiting.set(id, resolve);
      const late = setTimeout(answer, limits.tokenizer_ms_max, id, undefined);
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
