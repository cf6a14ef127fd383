import type { FunctionTool, InnerTool, ServerTool, ToolChoice } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { extOf, nativeOf, restOf } from './wire.ts';

/**
 * This wire's kinds of tools as functions, which every wire accepts: a custom tool has one text argument, and a tool of a namespace has
 * the namespace in its name (translation M4). The remainder allows the inverse.
 */
export function decodeTools(values: readonly JsonValue[]): InnerTool[] {
  return values.flatMap((value): InnerTool[] => {
    const declaration = asObject(value);
    if (declaration?.['type'] !== 'namespace') {
      const tool = decodeTool(value);
      return tool === undefined ? [] : [tool];
    }
    const { tools, ...namespace } = declaration;
    return asArray(tools).flatMap((inner) => inNamespace(decodeTool(inner), namespace));
  });
}

/** A tool that the gateway runs, for every client API. */
const GATEWAY_TOOL = /^(?:gateway|openrouter):/;

/** A declared tool: a function of the client, a custom tool, a tool of the gateway, or an unknown kind as a native. */
export function decodeTool(value: JsonValue): InnerTool | undefined {
  const declaration = asObject(value);
  if (declaration === undefined) return undefined;
  if (GATEWAY_TOOL.test(asText(declaration['type'])))
    return { ...declaration, type: asText(declaration['type']) } as ServerTool;
  if (declaration['type'] === 'custom') return decodeCustom(declaration);
  if (declaration['type'] !== 'function') return nativeOf(declaration);
  const { description, parameters, strict } = declaration;
  const tool: FunctionTool = { type: 'function', function: { name: asText(declaration['name']) } };
  if (typeof description === 'string') tool.function.description = description;
  if (asObject(parameters) !== undefined) tool.function.parameters = parameters as JsonObject;
  const rest = remainder(declaration, ['type', 'name', 'description', 'parameters', 'strict']);
  if (parameters === null) rest['parameters'] = null;
  if (typeof strict === 'boolean') tool.function.strict = strict;
  // The default of `strict` differs from chat's, so a missing value is recorded.
  else rest['strict'] = null;
  const ext = extOf(rest);
  return ext === undefined ? tool : { ...tool, ext };
}

function decodeCustom(declaration: JsonObject): FunctionTool {
  const { description, format } = declaration;
  const grammar = asText(asObject(format)?.['definition']);
  const input: JsonObject = { type: 'string' };
  // On other wires only this description constrains the model.
  if (grammar !== '') input['description'] = `In this ${asText(asObject(format)?.['syntax'])} grammar:\n${grammar}`;
  const parameters = { type: 'object', properties: { input }, required: ['input'], additionalProperties: false };
  const tool: FunctionTool = { type: 'function', function: { name: asText(declaration['name']), parameters } };
  if (typeof description === 'string') tool.function.description = description;
  return { ...tool, ext: extOf({ type: 'custom', ...remainder(declaration, ['type', 'name', 'description']) })! };
}

function inNamespace(tool: InnerTool | undefined, namespace: JsonObject): InnerTool[] {
  if (tool?.type !== 'function') return [];
  const { function: definition, ext } = tool as FunctionTool;
  const name = namespacedName(asText(namespace['name']), definition.name);
  return [{ type: 'function', function: { ...definition, name }, ext: extOf({ ...restOf(ext), namespace })! }];
}

/**
 * Functions that items of the conversation declare (`additional_tools`, `tool_search_output`). On this wire the items declare them; on
 * others they are ordinary tools (translation M14).
 */
export function toolsOfItems(items: readonly JsonValue[], declared: readonly InnerTool[]): InnerTool[] {
  const names = new Set(declared.map((tool) => (tool as FunctionTool).function?.name));
  const tools: InnerTool[] = [];
  for (const item of items) {
    const object = asObject(item);
    if (object?.['type'] !== 'additional_tools' && object?.['type'] !== 'tool_search_output') continue;
    for (const tool of decodeTools(asArray(object['tools']))) {
      if (tool.type !== 'function') continue;
      const { ext, function: definition } = tool as FunctionTool;
      if (names.has(definition.name)) continue;
      names.add(definition.name);
      tools.push({ type: 'function', function: definition, ext: extOf({ ...restOf(ext), via: 'item' })! });
    }
  }
  return tools;
}

/** The name of a tool of a namespace on wires without namespaces. */
export function namespacedName(namespace: string, name: string): string {
  return `${namespace}__${name}`;
}

/** The tool's name inside its namespace. */
export function bareName(name: string, namespace: string): string {
  const prefix = namespacedName(namespace, '');
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

/** A function of a request, as clients of this wire declared it. */
export interface DeclaredTool {
  name: string;
  namespace: string | undefined;
  /** Whether its input is text; as a call's arguments it is the only member of an object, `input`. */
  is_custom: boolean;
}

/** The declarations of a request's functions on this wire, by their names on others. */
export function declaredTools(tools: readonly InnerTool[] | null | undefined): ReadonlyMap<string, DeclaredTool> {
  const declared = new Map<string, DeclaredTool>();
  for (const tool of tools ?? []) {
    if (tool.type !== 'function') continue;
    const { function: definition, ext } = tool as FunctionTool;
    const rest = restOf(ext);
    const space = asText(asObject(rest['namespace'])?.['name']);
    declared.set(definition.name, {
      name: space === '' ? definition.name : bareName(definition.name, space),
      namespace: space === '' ? undefined : space,
      is_custom: rest['type'] === 'custom',
    });
  }
  return declared;
}

/** The tool choice; undefined if not set. */
export function decodeToolChoice(choice: JsonValue | undefined): ToolChoice | undefined {
  if (choice === 'none' || choice === 'auto' || choice === 'required') return choice;
  const object = asObject(choice);
  if (object === undefined) return undefined;
  if (object['type'] === 'function' || object['type'] === 'custom') return functionChoice(object);
  if (object['type'] !== 'allowed_tools') return { ...object, type: asText(object['type']) };
  // Nested, as in chat; the flat form is this wire's own.
  const { type: _, ...list } = asObject(object['allowed_tools']) ?? object;
  const tools = asArray(list['tools']).map((entry) => {
    const tool = asObject(entry) ?? {};
    return tool['type'] === 'function' || tool['type'] === 'custom' ? functionChoice(tool) : tool;
  });
  return { type: 'allowed_tools', allowed_tools: { ...list, tools } };
}

function functionChoice(choice: JsonObject): { type: 'function'; function: { name: string } } {
  return { type: 'function', function: { name: nameOf(choice) } };
}

/** A function's name, nested as in chat or flat as on this wire. */
export function nameOf(entry: JsonObject): string {
  return asText(asObject(entry['function'])?.['name'] ?? asObject(entry['custom'])?.['name'] ?? entry['name']);
}
