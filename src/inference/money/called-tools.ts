import type { FinishReason, ToolCallDelta } from '../../schemas/inner.ts';

/** Characters of tool arguments that are checked for valid JSON. */
const JUDGED_ARGUMENTS_CHARS_MAX = 1024 * 1024;

/** The number of tool calls in an answer, and of those with valid JSON arguments. */
export interface ToolCallCount {
  count: number;
  valid: number;
}

/** The arguments of an answer's tool calls, by the choice and the index of the call. */
export class CalledTools {
  readonly #arguments = new Map<string | number, string>();

  /** Adds a part of a call. */
  add({ index, function: called }: ToolCallDelta, choice: number): void {
    const key = choice === 0 ? index : `${choice}/${index}`;
    this.#arguments.set(key, (this.#arguments.get(key) ?? '') + (called.arguments ?? ''));
  }

  /** The number of calls, of which very long ones are a sample. Undefined if even the first is too long for one, or the answer was cut. */
  count(finishReason: FinishReason | null): ToolCallCount | undefined {
    if (finishReason === 'length') return undefined;
    let count = 0;
    let valid = 0;
    let chars = 0;
    for (const text of this.#arguments.values()) {
      chars += text.length;
      if (chars > JUDGED_ARGUMENTS_CHARS_MAX) break;
      count += 1;
      if (isJson(text)) valid += 1;
    }
    return count === 0 ? undefined : { count, valid };
  }
}

/** Whether arguments are valid JSON. Empty ones are: a tool may have no parameters. */
function isJson(text: string): boolean {
  if (text.trim() === '') return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
