import { accumulate } from '../schemas/accumulate.ts';
import { append } from '../schemas/append.ts';
import { chunksOf } from '../schemas/chunks.ts';
import type { ChatCompletion } from '../schemas/inner.ts';
import { type AnswerFilter, type AnswerFilterOptions, createAnswerFilter } from './answer-filter.ts';

/** A whole answer as its stream would be filtered: itself where nothing of it is changed. */
export function filteredAnswer(
  completion: ChatCompletion,
  options: AnswerFilterOptions,
): { completion: ChatCompletion; filter: AnswerFilter } {
  const filter = createAnswerFilter(options);
  const [choice] = completion.choices;
  const { message } = choice;
  const details = message.reasoning_details ?? [];
  const own = details.filter((detail) => !options.isOfTurn(detail));
  const of_turn = details.filter(options.isOfTurn);
  const plain = of_turn.length === 0 ? message : { ...message, reasoning_details: own };
  const shown = filter.take(chunksOf({ ...completion, choices: [{ ...choice, message: plain }] }));
  append(shown, filter.end());
  if (!filter.hasChanged() && !filter.hasEnded()) return { completion, filter };
  return { completion: accumulate(shown, completion.created), filter };
}
