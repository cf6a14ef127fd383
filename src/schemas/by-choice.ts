import { append } from './append.ts';
import type { ChatChunk, ChatRequest } from './inner.ts';

/** The number of answers (choices) that a request wants: `n`, or 1. */
export function choicesOf({ n }: Pick<ChatRequest, 'n'>): number {
  return n ?? 1;
}

/** Transforms the chunks of one choice. */
type Follow = (chunks: readonly ChatChunk[]) => readonly ChatChunk[];

/** A value for each choice of an answer, made at its first use. */
export class ByChoice<T> {
  readonly #make: () => T;
  readonly #values: T[] = [];

  constructor(make: () => T) {
    this.#make = make;
  }

  of(choice: number): T {
    while (this.#values.length <= choice) this.#values.push(this.#make());
    return this.#values[choice]!;
  }

  all(): readonly T[] {
    return this.#values;
  }
}

/** Transforms chunks of several choices, each choice by its own transform. Chunks of one choice stay in order. */
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

/** The same chunks, with the index of a choice. */
export function ofChoice(choice: number, chunks: readonly ChatChunk[]): readonly ChatChunk[] {
  if (chunks.every((chunk) => (chunk.choice ?? 0) === choice)) return chunks;
  return chunks.map((chunk) => ({ ...chunk, choice }));
}

/** Tracks which choices of an answer have not ended. */
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

/** The chunk `end`, once for each of these choices. */
export function ends(choices: readonly number[], end: ChatChunk): ChatChunk[] {
  return choices.map((choice) => (choice === 0 ? end : { ...end, choice }));
}
