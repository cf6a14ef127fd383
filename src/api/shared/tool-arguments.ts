import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { ChatRequest, Message } from '../../schemas/inner.ts';
import { JsonStructure, structureBreach } from '../../schemas/json-structure.ts';

/**
 * Throws a `GatewayError` 400 if the arguments of tool calls are longer than an encoder may parse at once, which several wires require. The
 * error names the field as in the client's API.
 */
export function checkArguments(messages: readonly Message[], fieldName: ((field: string) => string) | undefined): void {
  let chars = 0;
  const texts: string[] = [];
  for (const [at, { tool_calls }] of messages.entries()) {
    for (const { function: called } of tool_calls ?? []) {
      const breach = structureBreach(called.arguments);
      if (breach !== undefined) {
        const field = fieldName?.(`messages[${at}]`) ?? `messages[${at}].tool_calls`;
        throw new GatewayError(400, `${field}: the arguments of a tool call ${breach}`);
      }
      chars += called.arguments.length;
      texts.push(called.arguments);
    }
  }
  if (chars > limits.arguments_chars_max) {
    throw tooMuch(`${limits.arguments_chars_max} characters`);
  }
  // A value has at least one character.
  if (chars <= limits.arguments_values_max) return;
  let values = 0;
  for (const text of texts) {
    const structure = new JsonStructure();
    structure.write(text);
    values += structure.values;
  }
  if (values > limits.arguments_values_max) throw tooMuch(`${limits.arguments_values_max} values`);
}

function tooMuch(bound: string, what = 'arguments of all tool calls'): GatewayError {
  return new GatewayError(400, `The ${what} of a request must not have more than ${bound} together`);
}

/** Approximate length in JSON of a value besides its text. */
const VALUE_CHARS = 4;

/** A budget for the size of tool definitions. */
class DefinitionBudget {
  #chars = limits.definitions_chars_max;
  #values = limits.definitions_values_max;

  get taken_chars(): number {
    const values = limits.definitions_values_max - this.#values;
    return limits.definitions_chars_max - this.#chars + values * VALUE_CHARS;
  }

  /** Throws a `GatewayError` 400 if the value exceeds the budget. */
  take(value: unknown): void {
    this.#values -= 1;
    if (this.#values < 0) throw tooMuch(`${limits.definitions_values_max} values`, DEFINITIONS);
    if (typeof value === 'string') this.#takeChars(value.length);
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at += 1) this.take(value[at]);
      return;
    }
    for (const name in value) {
      this.#takeChars(name.length);
      this.take((value as Record<string, unknown>)[name]);
    }
  }

  #takeChars(chars: number): void {
    this.#chars -= chars;
    if (this.#chars < 0) throw tooMuch(`${limits.definitions_chars_max} characters`, DEFINITIONS);
  }
}

const DEFINITIONS = 'definitions of all tools and the schema';

/**
 * Checks that the definitions of tools and the schema of the answer are not more than an encoder may rewrite at once. Throws a `GatewayError`
 * 400. Returns the approximate length of the tools as JSON.
 */
export function checkDefinitions({ tools, response_format }: ChatRequest): number {
  const left = new DefinitionBudget();
  left.take(tools);
  const { taken_chars } = left;
  left.take(response_format);
  return taken_chars;
}
