import { append } from './append.ts';
import type { ChatChunk, ChatRequest } from './inner.ts';

/** How many answers a request asks for. */
export function choicesOf({ n }: Pick<ChatRequest, 'n'>): number {
  return n ?? 1;
}

/** Follows the chunks of one choice, and gives out what becomes of them. */
type Follow = (chunks: readonly ChatChunk[]) => readonly ChatChunk[];

/** Something for each choice of an answer, made when the choice is first met. */
export class ByChoice<T> {
  readonly #make: () => T;
  readonly #made: T[] = [];

  constructor(make: () => T) {
    this.#make = make;
  }

  of(choice: number): T {
    while (this.#made.length <= choice) this.#made.push(this.#make());
    return this.#made[choice]!;
  }

  all(): readonly T[] {
    return this.#made;
  }
}

/** What becomes of chunks of several choices where each choice is followed by itself: those of one stay in their order. */
export function followed(chunks: readonly ChatChunk[], follow: (choice: number) => Follow): ChatChunk[] {
  const out: ChatChunk[] = [];
  let from = 0;
  for (let at = 1; at <= chunks.length; at += 1) {
    const choice = chunks[from]!.choice ?? 0;
    if (at < chunks.length && (chunks[at]!.choice ?? 0) === choice) continue;
    append(out, ofChoice(choice, follow(choice)(chunks.slice(from, at))));
    from = at;
  }
  return out;
}

/** The same chunks as those of a choice. */
export function ofChoice(choice: number, chunks: readonly ChatChunk[]): readonly ChatChunk[] {
  if (chunks.every((chunk) => (chunk.choice ?? 0) === choice)) return chunks;
  return chunks.map((chunk) => ({ ...chunk, choice }));
}

/** Which of an answer's choices have not ended. */
export class OpenChoices {
  readonly #open: Set<number>;

  constructor(choices: number) {
    this.#open = new Set(Array.from({ length: choices }, (_, choice) => choice));
  }

  note({ choice = 0, finish_reason }: Pick<ChatChunk, 'choice' | 'finish_reason'>): void {
    if (finish_reason != null) this.#open.delete(choice);
  }

  get open(): readonly number[] {
    return [...this.#open];
  }
}

/** An end for each of these choices. */
export function ends(choices: readonly number[], end: ChatChunk): ChatChunk[] {
  return choices.map((choice) => (choice === 0 ? end : { ...end, choice }));
}
