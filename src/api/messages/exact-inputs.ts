import { asArray, asObject } from '../../providers/shared/json-shape.ts';
import type { JsonValue } from '../../schemas/json.ts';

/**
 * Replaces the tool inputs of a body, which is not validated yet, by those of `exact`. Inputs may contain 64-bit ids, and models compare them
 * with what they wrote.
 */
export function regainInputs(body: unknown, exact: JsonValue): void {
  const blocksOf = (source: JsonValue | undefined) =>
    asArray(asObject(source)?.['messages']).map((message) => asArray(asObject(message)?.['content']).map(asObject));
  const written = blocksOf(exact);
  for (const [i, blocks] of blocksOf(body as JsonValue).entries()) {
    for (const [at, block] of blocks.entries()) {
      const input = written[i]?.[at]?.['input'];
      if (block !== undefined && input !== undefined) block['input'] = input;
    }
  }
}
