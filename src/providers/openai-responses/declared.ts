import type { FunctionTool, InnerTool, ServerTool, ToolChoice } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { extOf, nativeOf, restOf } from './wire.ts';

/**
 * What this wire knows of tools beyond functions, as functions that every wire takes: a custom tool has one text as its
 * argument, a tool of a namespace has the namespace in its name (translation M4). The remainder tells the way back.
 */
export function decodeTools(values: readonly JsonValue[]): InnerTool[] {
  return values.flatMap((value): InnerTool[] => {
    const told = asObject(value);
    if (told?.['type'] !== 'namespace') {
      const tool = decodeTool(value);
      return tool === undefined ? [] : [tool];
    }
    const { tools, ...namespace } = told;
    return asArray(tools).flatMap((inner) => inNamespace(decodeTool(inner), namespace));
  });
}

/** A tool that the gateway runs, whichever API it is asked for by. */
const OF_GATEWAY = /^(?:gateway|openrouter):/;

/** A declared tool: a function of the client's, a custom one, one of the gateway's, or one of another kind, whole. */
export function decodeTool(value: JsonValue): InnerTool | undefined {
  const told = asObject(value);
  if (told === undefined) return undefined;
  if (OF_GATEWAY.test(asText(told['type']))) return { ...told, type: asText(told['type']) } as ServerTool;
  if (told['type'] === 'custom') return decodeCustom(told);
  if (told['type'] !== 'function') return nativeOf(told);
  const { description, parameters, strict } = told;
  const tool: FunctionTool = { type: 'function', function: { name: asText(told['name']) } };
  if (typeof description === 'string') tool.function.description = description;
  if (asObject(parameters) !== undefined) tool.function.parameters = parameters as JsonObject;
  const rest = remainder(told, ['type', 'name', 'description', 'parameters', 'strict']);
  if (parameters === null) rest['parameters'] = null;
  if (typeof strict === 'boolean') tool.function.strict = strict;
  // Left out, it stands for another thing here than in chat.
  else rest['strict'] = null;
  const ext = extOf(rest);
  return ext === undefined ? tool : { ...tool, ext };
}

function decodeCustom(told: JsonObject): FunctionTool {
  const { description, format } = told;
  const grammar = asText(asObject(format)?.['definition']);
  const input: JsonObject = { type: 'string' };
  // Elsewhere nothing holds the model to it but these words.
  if (grammar !== '') input['description'] = `In this ${asText(asObject(format)?.['syntax'])} grammar:\n${grammar}`;
  const parameters = { type: 'object', properties: { input }, required: ['input'], additionalProperties: false };
  const tool: FunctionTool = { type: 'function', function: { name: asText(told['name']), parameters } };
  if (typeof description === 'string') tool.function.description = description;
  return { ...tool, ext: extOf({ type: 'custom', ...remainder(told, ['type', 'name', 'description']) })! };
}

function inNamespace(tool: InnerTool | undefined, namespace: JsonObject): InnerTool[] {
  if (tool?.type !== 'function') return [];
  const { function: told, ext } = tool as FunctionTool;
  const name = namespacedName(asText(namespace['name']), told.name);
  return [{ type: 'function', function: { ...told, name }, ext: extOf({ ...restOf(ext), namespace })! }];
}

/**
 * Functions that items of the conversation declare, where the client gives tools as it goes on (`additional_tools`,
 * `tool_search_output`): on this wire the items say it, elsewhere they are tools as all others (translation M14).
 */
export function toolsOfItems(items: readonly JsonValue[], declared: readonly InnerTool[]): InnerTool[] {
  const names = new Set(declared.map((tool) => (tool as FunctionTool).function?.name));
  const found: InnerTool[] = [];
  for (const item of items) {
    const told = asObject(item);
    if (told?.['type'] !== 'additional_tools' && told?.['type'] !== 'tool_search_output') continue;
    for (const tool of decodeTools(asArray(told['tools']))) {
      if (tool.type !== 'function') continue;
      const { ext, function: made } = tool as FunctionTool;
      if (names.has(made.name)) continue;
      names.add(made.name);
      found.push({ type: 'function', function: made, ext: extOf({ ...restOf(ext), via: 'item' })! });
    }
  }
  return found;
}

/** How a tool of a namespace is called where there are none. */
export function namespacedName(namespace: string, name: string): string {
  return `${namespace}__${name}`;
}

/** The tool's name inside its namespace. */
export function bareName(name: string, namespace: string): string {
  const prefix = namespacedName(namespace, '');
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

/** A function of a request as this wire's clients declared it. */
export interface DeclaredTool {
  name: string;
  namespace: string | undefined;
  /** Its input is a text; as a call's arguments it is the only member of an object, `input`. */
  is_custom: boolean;
}

/** What a request's functions are on this wire, by the names that they have on others. */
export function declaredTools(tools: readonly InnerTool[] | null | undefined): ReadonlyMap<string, DeclaredTool> {
  const declared = new Map<string, DeclaredTool>();
  for (const tool of tools ?? []) {
    if (tool.type !== 'function') continue;
    const { function: told, ext } = tool as FunctionTool;
    const rest = restOf(ext);
    const space = asText(asObject(rest['namespace'])?.['name']);
    declared.set(told.name, {
      name: space === '' ? told.name : bareName(told.name, space),
      namespace: space === '' ? undefined : space,
      is_custom: rest['type'] === 'custom',
    });
  }
  return declared;
}

/** How tools may be chosen; undefined where nothing is told. */
export function decodeToolChoice(choice: JsonValue | undefined): ToolChoice | undefined {
  if (choice === 'none' || choice === 'auto' || choice === 'required') return choice;
  const told = asObject(choice);
  if (told === undefined) return undefined;
  if (told['type'] === 'function' || told['type'] === 'custom') return functionChoice(told);
  if (told['type'] !== 'allowed_tools') return { ...told, type: asText(told['type']) };
  // Nested, as chat has it: the flat form is another wire's.
  const { type: _, ...list } = asObject(told['allowed_tools']) ?? told;
  const tools = asArray(list['tools']).map((entry) => {
    const tool = asObject(entry) ?? {};
    return tool['type'] === 'function' || tool['type'] === 'custom' ? functionChoice(tool) : tool;
  });
  return { type: 'allowed_tools', allowed_tools: { ...list, tools } };
}

function functionChoice(told: JsonObject): { type: 'function'; function: { name: string } } {
  return { type: 'function', function: { name: nameOf(told) } };
}

/** A function's name, nested as chat has it or flat as this wire does. */
export function nameOf(told: JsonObject): string {
  return asText(asObject(told['function'])?.['name'] ?? asObject(told['custom'])?.['name'] ?? told['name']);
}
