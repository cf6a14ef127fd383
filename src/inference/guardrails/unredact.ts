import { placeholderFinder } from '../../guardrails/restorer.ts';
import { type AnswerFilter, createAnswerFilter, wantsJson } from '../../guardrails/streams/answer-filter.ts';
import type { ChatChunk, ChatRequest } from '../../schemas/inner.ts';
import type { AnswerTransform } from '../transform.ts';

/**
 * Restores in an answer the values that were redacted reversibly in its request. `values`: the value of each placeholder; more may be
 * added while the call runs. Signed reasoning keeps its signature: when it returns to the model, it is redacted to the same text.
 */
export class Unredact implements AnswerTransform {
  readonly refusal = undefined;
  readonly #filter: AnswerFilter;

  constructor(request: ChatRequest, values: ReadonlyMap<string, string>, choices: number) {
    const options = {
      finder: placeholderFinder(values),
      content_is_json: wantsJson(request),
      keeps_signatures: true,
      isOfTurn: () => false,
    };
    this.#filter = createAnswerFilter(options, choices);
  }

  take(chunks: ChatChunk[]): ChatChunk[] {
    return this.#filter.take(chunks);
  }

  reopen(): ChatChunk[] {
    return this.#filter.reopen();
  }

  end(): ChatChunk[] {
    return this.#filter.end();
  }

  hasChanged(): boolean {
    return this.#filter.hasChanged();
  }
}
