import { limits } from '../../limits.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import type { ChatChunk, ChatRequest } from '../../schemas/inner.ts';
import { answerLevels, type StructureBounds, structureBreach } from '../../schemas/json-structure.ts';

/** What of an answer is counted, in the words of its failure. */
const PARTS_MAX = {
  'tool calls': limits.answer_calls_max,
  annotations: limits.answer_annotations_max,
  'parts of reasoning': limits.answer_details_max,
  images: limits.answer_images_max,
  blocks: limits.answer_blocks_max,
} as const;

type Part = keyof typeof PARTS_MAX;

function excess(text: string): UpstreamError {
  return new UpstreamError(
    'invalid_response',
    `The provider's answer has ${text}, which is more than the gateway accepts`,
    {
      status: 200,
    },
  );
}

/** What the JSON of one answer, or of one event of it, may hold. Probabilities of tokens are many values. */
export function jsonBoundsOf({
  logprobs,
  top_logprobs,
}: Pick<ChatRequest, 'logprobs' | 'top_logprobs'>): StructureBounds {
  const has_logprobs = logprobs === true || top_logprobs != null;
  return { ...answerLevels, values_max: has_logprobs ? limits.answer_logprob_values_max : limits.answer_values_max };
}

/** Throws `UpstreamError` for a text of JSON that breaks a rule of its structure. */
export function requireUnbroken(breach: string | undefined): void {
  if (breach === undefined) return;
  const message = `The provider's answer is more than the gateway accepts: its JSON ${breach}`;
  throw new UpstreamError('invalid_response', message, { status: 200 });
}

/** Throws `UpstreamError` for a text of JSON that is beyond its bounds. */
export function requireBounded(text: string, bounds: StructureBounds): void {
  requireUnbroken(structureBreach(text, bounds));
}

/** Counts the parts of one streamed answer. A class and not closures: there is one for every stream. */
export class AnswerBounds {
  #calls = 0;
  #annotations = 0;
  #details = 0;
  #images = 0;
  #blocks = 0;

  /** Counts one chunk more; what comes back is why it is too much. */
  add({ delta, ext }: ChatChunk): UpstreamError | undefined {
    const { tool_calls, annotations, reasoning_details, images } = delta;
    if (ext?.slot?.open !== undefined) this.#blocks += 1;
    if (tool_calls !== undefined) for (const { id } of tool_calls) if (id !== undefined) this.#calls += 1;
    if (annotations !== undefined) this.#annotations += annotations.length;
    if (images !== undefined) this.#images += images.length;
    if (reasoning_details !== undefined) {
      // The deltas of one detail repeat its ordinal.
      for (const { index = this.#details } of reasoning_details) this.#details = Math.max(this.#details, index + 1);
    }
    return this.#beyond();
  }

  #beyond(): UpstreamError | undefined {
    return (
      beyond('blocks', this.#blocks) ??
      beyond('tool calls', this.#calls) ??
      beyond('annotations', this.#annotations) ??
      beyond('parts of reasoning', this.#details) ??
      beyond('images', this.#images)
    );
  }
}

function beyond(part: Part, count: number): UpstreamError | undefined {
  return count > PARTS_MAX[part] ? excess(`more than ${PARTS_MAX[part]} ${part}`) : undefined;
}

/** Reads what an upstream sent; that it cannot be read, in whatever way, is the upstream's failure. */
export function readable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw asUpstreamFailure(error);
  }
}

/** What a decoder throws: its own word of what is wrong, or, for what nobody thought of, that nothing can be made of the answer. */
export function asUpstreamFailure(error: unknown): unknown {
  if (!(error instanceof TypeError || error instanceof RangeError)) return error;
  return new UpstreamError('invalid_response', 'The provider sent an answer that cannot be read', {
    status: 200,
    cause: error,
  });
}
