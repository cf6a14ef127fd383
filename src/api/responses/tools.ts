import { decodeToolChoice, decodeTools } from '../../providers/openai-responses/declared.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { ResponsesRequestBody } from './door.ts';

/** The tools of a request and how they may be chosen. */
export function requestTools({ tools, tool_choice }: ResponsesRequestBody): Pick<ChatRequest, 'tools' | 'tool_choice'> {
  const made: Pick<ChatRequest, 'tools' | 'tool_choice'> = {};
  const declared = decodeTools((tools ?? []).map((tool) => flat(tool as unknown as JsonObject)));
  if (declared.length > 0) made.tools = declared;
  const choice = decodeToolChoice((tool_choice ?? undefined) as JsonValue | undefined);
  if (choice !== undefined) made.tool_choice = choice;
  return made;
}

/** A function as chat completions declare it. */
function flat(tool: JsonObject): JsonObject {
  const { function: nested, ...rest } = tool;
  return tool['type'] === 'function' && nested != null ? { ...(nested as JsonObject), ...rest } : tool;
}
