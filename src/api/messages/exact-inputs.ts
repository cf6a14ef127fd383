import { asArray, asObject } from '../../providers/shared/json-shape.ts';
import type { JsonValue } from '../../schemas/json.ts';

/**
 * Puts the inputs of `exact` in the place of those of a body which may be anything yet: clients write what tools were given as JSON,
 * ids of 64 bits included, and models compare it with what they said.
 */
export function regainInputs(body: unknown, exact: JsonValue): void {
  const blocksOf = (told: JsonValue | undefined) =>
    asArray(asObject(told)?.['messages']).map((message) => asArray(asObject(message)?.['content']).map(asObject));
  const written = blocksOf(exact);
  for (const [i, blocks] of blocksOf(body as JsonValue).entries()) {
    for (const [at, block] of blocks.entries()) {
      const input = written[i]?.[at]?.['input'];
      if (block !== undefined && input !== undefined) block['input'] = input;
    }
  }
}
