import { lookupTable } from '../../schemas/lookup-table.ts';
import type { AttemptState } from '../dialect.ts';
import { isObject } from './wire.ts';

/** The encoder's facts for the decoders of the same attempt. Plain data, part of `EncodedRequest.state`. */
export interface KnownState {
  /** Name as sent -> name as the client knows it, for tools that had to be renamed. */
  tool_names: Readonly<Record<string, string>>;
  /** The names of the tools as sent. */
  tools: readonly string[];
  /** Every tool call id of the conversation so far. */
  call_ids: readonly string[];
  think_tags: boolean;
  think_in_reasoning: boolean;
  cached_tokens_header: string | undefined;
  /** The number of requested choices. */
  choices: number;
}

const NO_NAMES: Readonly<Record<string, string>> = lookupTable<string>({});
const NONE: readonly string[] = [];

/** Reads the state back. Missing members have their defaults, so that a decoder also works without an encoder. */
export function readState(state: AttemptState): KnownState {
  const header = typeof state['cached_tokens_header'] === 'string' ? state['cached_tokens_header'] : undefined;
  return {
    tool_names: isObject(state['tool_names']) ? (state['tool_names'] as Record<string, string>) : NO_NAMES,
    tools: Array.isArray(state['tools']) ? (state['tools'] as string[]) : NONE,
    call_ids: Array.isArray(state['call_ids']) ? (state['call_ids'] as string[]) : NONE,
    think_tags: state['think_tags'] === true,
    think_in_reasoning: state['think_in_reasoning'] === true,
    cached_tokens_header: header,
    choices: typeof state['choices'] === 'number' ? state['choices'] : 1,
  };
}

/** The cached tokens that a header of the answer states. Call it when the headers have arrived. */
export function cachedTokensIn(state: AttemptState, header: string): number | undefined {
  const field = state.headers?.[header];
  const value = Array.isArray(field) ? field[0] : field;
  return value !== undefined && /^\d{1,12}$/.test(value) ? Number(value) : undefined;
}
