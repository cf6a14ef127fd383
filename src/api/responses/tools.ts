import { GatewayError } from '../../errors.ts';
import { decodeToolChoice, decodeTools, toolsOfItems } from '../../providers/openai-responses/declared.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { ResponsesRequestBody } from './door.ts';

type Tools = Pick<ChatRequest, 'tools' | 'tool_choice'>;

/** The tools of a request and how they may be chosen. Throws `GatewayError` 400 that names the tool. */
export function requestTools({ tools, tool_choice, input }: ResponsesRequestBody): Tools {
  const made: Tools = {};
  const given = (tools ?? []) as unknown as JsonObject[];
  const declared = decodeTools(given.map((tool, i) => flat(tool, `tools[${i}]`)));
  declared.push(...toolsOfItems(Array.isArray(input) ? (input as unknown as JsonValue[]) : [], declared));
  if (declared.length > 0) made.tools = declared;
  if (tool_choice != null && typeof tool_choice === 'object') checkChoice(tool_choice as unknown as JsonObject);
  const choice = decodeToolChoice((tool_choice ?? undefined) as JsonValue | undefined);
  if (choice !== undefined) made.tool_choice = choice;
  return made;
}

/** A function as this API has it; some clients declare it as chat completions do. */
function flat(tool: JsonObject, field: string): JsonObject {
  if (tool['type'] !== 'function') return tool;
  const { function: nested, ...rest } = tool;
  const made = nested == null ? rest : { ...rest, ...(nested as JsonObject) };
  if (typeof made['name'] !== 'string') throw new GatewayError(400, `${field}.name is required`);
  return made;
}

function checkChoice(choice: JsonObject): void {
  if (choice['type'] === 'function' && choice['name'] === undefined && choice['function'] == null) {
    throw new GatewayError(400, 'tool_choice.name is required');
  }
}
