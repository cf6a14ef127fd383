import type { ToolChoice } from '../schemas/inner.ts';
import { asArray, asObject } from './json-shape.ts';

/** The names that `tool_choice: {type: "allowed_tools"}` leaves; both the flat and the nested form are in use. */
export function allowedTools(choice: ToolChoice | null | undefined): ReadonlySet<string> | undefined {
  if (typeof choice !== 'object' || choice?.type !== 'allowed_tools') return undefined;
  const list = asObject(choice['allowed_tools']) ?? choice;
  const names = asArray(list['tools']).map((entry) => {
    const tool = asObject(entry);
    return asObject(tool?.['function'])?.['name'] ?? tool?.['name'];
  });
  return new Set(names.filter((name) => typeof name === 'string'));
}
