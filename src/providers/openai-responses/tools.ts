import type { ChatRequest, FunctionTool, InnerTool, Native, ResponseFormat } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { DialectEndpoint } from '../dialect.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { withProperties } from '../shared/tool-schema.ts';
import { bareName, declaredTools, nameOf } from './declared.ts';
import type { Encoding } from './parts.ts';
import { restOf, WIRE, type WireItem } from './wire.ts';

/** The tools and the tool choice as fields of the body. Empty without tools: a choice alone would be refused. */
export function encodeTools(request: ChatRequest, { provider }: DialectEndpoint, encoding: Encoding): JsonObject {
  const tools = inNamespaces(request.tools ?? [], (tool, i) => encodeTool(tool, `tools[${i}]`, encoding));
  const search = webSearch(request.web_search_options);
  if (search !== undefined && !tools.some(({ type }) => asText(type).startsWith('web_search'))) tools.push(search);
  addXSearch(request['x_search_filter'], tools, provider, encoding);
  if (tools.length === 0) return {};
  const choice = encodeChoice(request, tools, encoding);
  return {
    tools,
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(request.parallel_tool_calls == null ? {} : { parallel_tool_calls: request.parallel_tool_calls }),
  };
}

/** The tools on this wire: neighbours of one namespace are one tool. */
function inNamespaces(
  tools: readonly InnerTool[],
  encode: (tool: InnerTool, i: number) => JsonObject | undefined,
): JsonObject[] {
  const encoded: JsonObject[] = [];
  let open: { name: JsonValue | undefined; tools: JsonObject[] } | undefined;
  for (const [i, tool] of tools.entries()) {
    const encodedTool = encode(tool, i);
    if (encodedTool === undefined) continue;
    const { namespace, ...ownFields } = encodedTool;
    const namespaceFields = asObject(namespace);
    if (namespaceFields === undefined) {
      encoded.push(encodedTool);
      open = undefined;
    } else if (open !== undefined && open.name === namespaceFields['name']) {
      open.tools.push(ownFields);
    } else {
      open = { name: namespaceFields['name'], tools: [ownFields] };
      encoded.push({ ...namespaceFields, tools: open.tools });
    }
  }
  return encoded;
}

/**
 * Tools of the provider that it bills by units that no price list has: sessions, searches of stored files, and images of another model
 * (https://platform.openai.com/docs/pricing).
 */
const UNPRICED: ReadonlySet<string> = new Set(['image_generation', 'code_interpreter', 'file_search']);

function isUnpriced({ type, environment, tools }: JsonObject): boolean {
  if (type === 'namespace') return asArray(tools).some((tool) => isUnpriced(asObject(tool) ?? {}));
  // A shell is the client's own, unless it runs in one of the provider's containers.
  if (type === 'shell') return asText(asObject(environment)?.['type']).startsWith('container');
  return UNPRICED.has(asText(type));
}

function encodeNative({ wire, block }: Native, field: string, encoding: Encoding): JsonObject | undefined {
  if (wire !== WIRE) {
    encoding.addReport('dropped', field, `a tool of ${wire} cannot be expressed in this provider's API`);
    return undefined;
  }
  if (!isUnpriced(block) || encoding.quirks.unpriced_tools) return block;
  encoding.addReport('dropped', field, `${asText(block['type'])} is billed by units without a known price`);
  return undefined;
}

/** The tools that an item declares; undefined if it declares none. */
function toolsOfItem({ type, tools }: WireItem): JsonValue[] | undefined {
  return type === 'additional_tools' || type === 'tool_search_output' ? asArray(tools) : undefined;
}

/** The items without tools that have no price. */
export function withoutUnpriced(items: readonly WireItem[], encoding: Encoding): WireItem[] {
  if (encoding.quirks.unpriced_tools) return [...items];
  return items.map((item, i) => {
    const tools = toolsOfItem(item);
    const kept = tools?.filter((tool) => !isUnpriced(asObject(tool) ?? {}));
    if (tools === undefined || kept === undefined || kept.length === tools.length) return item;
    encoding.addReport('dropped', `input[${i}].tools`, 'some of them have no known price');
    return { ...item, tools: kept };
  });
}

/** All tools that items declare. */
export function toolsOfInput(items: readonly WireItem[]): JsonValue[] {
  return items.flatMap((item) => toolsOfItem(item) ?? []);
}

function encodeTool(tool: InnerTool, field: string, encoding: Encoding): JsonObject | undefined {
  if (tool.type === 'native') return encodeNative(tool as Native, field, encoding);
  if (tool.type !== 'function') {
    encoding.addReport('dropped', field, `${tool.type} is not run by this upstream`);
    return undefined;
  }
  const { function: definition, ext } = tool as FunctionTool;
  const { via, ...rest } = restOf(ext);
  // An item of the conversation declares it.
  if (via === 'item') return undefined;
  const namespace = asText(asObject(rest['namespace'])?.['name']);
  const name = encoding.toolName(namespace === '' ? definition.name : bareName(definition.name, namespace));
  if (rest['type'] === 'custom') {
    return { ...rest, name, ...(definition.description == null ? {} : { description: definition.description }) };
  }
  return {
    ...rest,
    type: 'function',
    name,
    ...(definition.description == null ? {} : { description: definition.description }),
    parameters:
      definition.parameters == null && 'parameters' in rest ? null : withProperties(definition.parameters ?? {}),
    // Strict is the default here, and schemas that are not written for it are refused (translation 2.6).
    strict: definition.strict ?? ('strict' in rest ? null : false),
  };
}

/** Adds the filter of searched X posts: a tool of its own (https://docs.x.ai/docs/guides/tools/search-tools). */
function addXSearch(filter: unknown, tools: JsonObject[], provider: string, encoding: Encoding): void {
  const filterFields = asObject(filter);
  if (filterFields === undefined) return;
  if (!encoding.quirks.x_search) {
    encoding.addReport('dropped', 'x_search_filter', `${provider} does not search X`);
    return;
  }
  const at = tools.findIndex(({ type }) => type === 'x_search');
  const tool = { ...tools[at], type: 'x_search', ...remainder(filterFields, []) };
  if (at === -1) tools.push(tool);
  else tools[at] = tool;
}

/** The search tool for the chat API's `web_search_options` (https://platform.openai.com/docs/guides/tools-web-search). */
function webSearch(options: JsonObject | null | undefined): JsonObject | undefined {
  if (options == null) return undefined;
  const location = asObject(options['user_location']);
  const size = asText(options['search_context_size']);
  return {
    type: 'web_search',
    ...(size === '' ? {} : { search_context_size: size }),
    ...(location === undefined ? {} : { user_location: { type: 'approximate', ...asObject(location['approximate']) } }),
  };
}

function encodeChoice(request: ChatRequest, tools: JsonObject[], encoding: Encoding): JsonValue | undefined {
  const choice = request.tool_choice ?? undefined;
  if (choice === undefined || typeof choice === 'string') return choice;
  const fields = choice as JsonObject;
  const declared = declaredTools(request.tools);
  const toolChoiceOf = (entry: JsonObject): JsonObject => {
    const name = nameOf(entry);
    const tool = declared.get(name);
    return { type: tool?.is_custom ? 'custom' : 'function', name: encoding.toolName(tool?.name ?? name) };
  };
  switch (choice.type) {
    case 'function':
      return toolChoiceOf(fields);
    case 'allowed_tools': {
      // Both the flat and the nested form are in use.
      const list = asObject(fields['allowed_tools']) ?? fields;
      const allowed = asArray(list['tools']).map((entry) => {
        const tool = asObject(entry) ?? {};
        return tool['type'] === 'function' ? toolChoiceOf(tool) : tool;
      });
      return { type: 'allowed_tools', mode: list['mode'] === 'required' ? 'required' : 'auto', tools: allowed };
    }
    default:
      if (tools.some(({ type }) => type === choice.type)) return fields;
      encoding.addReport('dropped', 'tool_choice', 'this provider does not support this choice');
      return undefined;
  }
}

/** `text.format` for a response format; undefined if none is requested or the format is unknown. */
export function encodeFormat(requested: ResponseFormat | null | undefined, encoding: Encoding): JsonObject | undefined {
  if (requested == null || requested.type === 'text') return undefined;
  if (requested.type === 'json_object') return { type: 'json_object' };
  const jsonSchema = asObject((requested as JsonObject)['json_schema']);
  if (requested.type !== 'json_schema' || jsonSchema === undefined) {
    encoding.addReport('dropped', 'response_format', `this provider does not support the format ${requested.type}`);
    return undefined;
  }
  const { name, description, strict, schema } = jsonSchema;
  return {
    type: 'json_schema',
    name: asText(name) || 'response',
    schema: asObject(schema) ?? { type: 'object' },
    ...(description == null ? {} : { description }),
    ...(strict == null ? {} : { strict }),
  };
}
