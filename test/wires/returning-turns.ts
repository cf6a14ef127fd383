/**
 * Recorded answers with state of a model, and what a gateway keeps of their turns, for tests of turns that are sent
 * back.
 */

import { createVault } from '../../src/accounts/vault.ts';
import { createSealer } from '../../src/inference/reasoning/seal.ts';
import { createTurnStates, type TurnStates } from '../../src/inference/reasoning/states.ts';
import { createTurnVault } from '../../src/inference/reasoning/vault.ts';
import type { ChatDialect } from '../../src/providers/dialect.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatChunk, ChatCompletion, Wire } from '../../src/schemas/inner.ts';
import { object, type Recording } from '../readings/recordings.ts';

export const SECRET = 'a secret of thirty-two characters';
export const GENERATION = `gen-1-${'a'.repeat(20)}`;

/** Wires whose answers contain state, each with a model that accepts it back. */
export const STATE_WIRES: readonly [Wire, upstream_model: string][] = [
  ['anthropic-messages', 'claude-sonnet-4-5'],
  ['gemini-generate-content', 'gemini-3-pro-preview'],
  ['openai-responses', 'gpt-5'],
  ['bedrock-converse', 'anthropic.claude-sonnet-4-5-20250929-v1:0'],
];

/** Search results larger than a seal may be: by the seal alone the turn returns without them. */
export const TOO_LARGE: ReadonlySet<string> = new Set([
  'anthropic--events-anthropic-web-search-tool-1.json',
  'anthropic--test-anthropic-test-anthropic-model-web-search-tool-stream-0.json',
  'anthropic--test-anthropic-test-anthropic-text-parts-ahead-of-built-in-tool-call-1.json',
  'anthropic--test-anthropic-test-anthropic-text-parts-ahead-of-built-in-tool-call-2.json',
  'anthropic--test-anthropic-test-anthropic-text-parts-ahead-of-built-in-tool-call-3.json',
]);

export function statesOf(options: { keeps: boolean }): TurnStates {
  const vault = createTurnVault({
    secret: SECRET,
    store: undefined,
    crypt: createVault(SECRET),
    nowMs: () => 0,
    keep_ms: 1_000,
    log: { warn: () => {} },
  });
  return createTurnStates({ sealer: createSealer(SECRET), vault, ...options });
}

/** The recorded answer as chunks; undefined if it is not an answer, or its bytes are not kept as text. */
export function chunksOf(dialect: ChatDialect, { response }: Recording): ChatChunk[] | undefined {
  if (response.json !== undefined || response.status !== 200 || dialect.frames !== 'sse') return undefined;
  const framed = (response.events ?? []).map(
    (event) => `event: ${object(event)['type']}\ndata: ${JSON.stringify(event)}\n\n`,
  );
  const framer = createFramer('sse');
  const frames = [...framer.push(Buffer.from(response.text ?? framed.join(''))), ...framer.end()];
  const decoder = dialect.createStreamDecoder({ generation_id: GENERATION });
  try {
    return [...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()];
  } catch {
    return undefined;
  }
}

/** The recorded whole answer. */
export function wholeOf(dialect: ChatDialect, { response }: Recording): ChatCompletion | undefined {
  if (response.json === undefined || response.status !== 200) return undefined;
  try {
    return accumulate(dialect.decodeResponse(response.json, { generation_id: GENERATION }), 0);
  } catch {
    return undefined;
  }
}
