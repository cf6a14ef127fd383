import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatCompletion } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import type { AttemptState } from '../dialect.ts';
import { readWholeAnswer } from './stream.ts';

/** The whole answer: the same reader as the stream's, so both say the same of the same answer. */
export function decodeResponse(body: JsonValue, state: AttemptState, created: number): ChatCompletion {
  return accumulate(readWholeAnswer(body, state), created);
}
