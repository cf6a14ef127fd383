import { createAnswerFilter, wantsJson } from '../guardrails/answer-filter.ts';
import { filteredAnswer } from '../guardrails/filtered-answer.ts';
import { placeholderFinder } from '../guardrails/restorer.ts';
import { withSources } from '../http/sources.ts';
import { choicesOf } from '../schemas/by-choice.ts';
import type { Inference } from './answer.ts';
import type { Call } from './call.ts';
import type { StreamEvent } from './stream-answer.ts';

/**
 * Gives back in answers what was redacted of their requests so that it can be. `values`: what stands for what, by placeholder;
 * it may grow while the call runs. What was signed stays so: on its way back to the model it is redacted to the same again.
 */
export function createRestored(
  inner: Pick<Inference, 'complete' | 'stream'>,
  values: ReadonlyMap<string, string>,
): Pick<Inference, 'complete' | 'stream'> {
  const optionsOf = ({ request }: Call) => ({
    finder: placeholderFinder(values),
    content_is_json: wantsJson(request),
    keeps_signatures: true,
    isOfTurn: () => false,
  });

  async function* restoredStream(call: Call): AsyncGenerator<StreamEvent, void, undefined> {
    const filter = createAnswerFilter(optionsOf(call), choicesOf(call.request));
    let is_open = false;
    for await (const event of inner.stream(call)) {
      const chunks =
        event.type === 'chunks'
          ? filter.take(event.chunks)
          : event.type === 'end'
            ? filter.end()
            : is_open
              ? filter.reopen()
              : [];
      if (chunks.length > 0) yield { type: 'chunks', chunks };
      if (event.type !== 'chunks') yield event;
      is_open ||= event.type === 'open';
    }
  }

  return {
    async complete(call) {
      const answer = await inner.complete(call);
      const { completion } = filteredAnswer(answer.completion, optionsOf(call));
      return completion === answer.completion ? answer : { ...answer, completion };
    },
    stream: (call) => withSources(restoredStream(call)),
  };
}
