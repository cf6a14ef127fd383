import { isSeal } from '../../inference/reasoning/seal.ts';
import { chunksOf } from '../../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion } from '../../schemas/inner.ts';

/** The chunks that would have streamed a whole answer. Its seal follows all blocks, and is not part of their order. */
export function turnChunks(completion: ChatCompletion): ChatChunk[] {
  const [choice] = completion.choices;
  const details = choice.message.reasoning_details ?? [];
  const seal = details.at(-1);
  if (seal === undefined || !isSeal(seal)) return chunksOf(completion);
  const message = { ...choice.message, reasoning_details: details.slice(0, -1) };
  const chunks = chunksOf({ ...completion, choices: [{ ...choice, message }] });
  return chunks.toSpliced(-1, 0, { delta: { reasoning_details: [seal] } });
}
