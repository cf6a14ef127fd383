import { accumulate } from '../schemas/accumulate.ts';
import { append } from '../schemas/append.ts';
import { chunksOf } from '../schemas/chunks.ts';
import type { ChatCompletion, Choice } from '../schemas/inner.ts';
import { type AnswerFilter, type AnswerFilterOptions, createAnswerFilter } from './answer-filter.ts';

/** A whole answer as its stream would be filtered: itself where nothing of it is changed. */
export function filteredAnswer(
  completion: ChatCompletion,
  options: AnswerFilterOptions,
): { completion: ChatCompletion; filter: AnswerFilter } {
  const { choices } = completion;
  const filter = createAnswerFilter(options, choices.length);
  const withoutTurns = (choice: Choice): Choice => {
    const { message } = choice;
    const details = message.reasoning_details ?? [];
    if (!details.some(options.isOfTurn)) return choice;
    const own = details.filter((detail) => !options.isOfTurn(detail));
    return { ...choice, message: { ...message, reasoning_details: own } };
  };
  const [first, ...others] = choices;
  const shown = filter.take(chunksOf({ ...completion, choices: [withoutTurns(first), ...others.map(withoutTurns)] }));
  append(shown, filter.end());
  if (!filter.hasChanged() && !filter.hasEnded()) return { completion, filter };
  return { completion: accumulate(shown, completion.created), filter };
}
