import type { ToolChoice } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asArray, asObject } from './json-shape.ts';

type Choice = ToolChoice | null | undefined;

/** The list of `tool_choice: {type: "allowed_tools"}`; both the flat and the nested form are in use. */
function listOf(choice: Choice): JsonObject | undefined {
  if (typeof choice !== 'object' || choice?.type !== 'allowed_tools') return undefined;
  return asObject(choice['allowed_tools']) ?? (choice as JsonObject);
}

/** The mode of a choice of several tools, for wires that are sent those tools only; undefined for any other choice. */
export function allowedMode(choice: Choice): 'required' | 'auto' | undefined {
  const list = listOf(choice);
  if (list === undefined) return undefined;
  return list['mode'] === 'required' ? 'required' : 'auto';
}

/** The names of the tools that such a choice allows; undefined for any other choice. */
export function allowedTools(choice: Choice): ReadonlySet<string> | undefined {
  const list = listOf(choice);
  if (list === undefined) return undefined;
  const names = asArray(list['tools']).map((entry) => {
    const tool = asObject(entry);
    return asObject(tool?.['function'])?.['name'] ?? tool?.['name'];
  });
  return new Set(names.filter((name) => typeof name === 'string'));
}
