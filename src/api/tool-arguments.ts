import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Message } from '../schemas/inner.ts';
import { JsonStructure, structureBreach } from '../schemas/json-structure.ts';

/**
 * Refuses arguments of tool calls that are more than an encoder may read at once: several wires want them as objects. Throws `GatewayError`
 * 400 that names the field as its client does.
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
  // Fewer characters cannot have more values.
  if (chars <= limits.arguments_values_max) return;
  let values = 0;
  for (const text of texts) {
    const structure = new JsonStructure();
    structure.write(text);
    values += structure.values;
  }
  if (values > limits.arguments_values_max) throw tooMuch(`${limits.arguments_values_max} values`);
}

function tooMuch(bound: string): GatewayError {
  return new GatewayError(
    400,
    `The arguments of all tool calls of a request must not have more than ${bound} together`,
  );
}
