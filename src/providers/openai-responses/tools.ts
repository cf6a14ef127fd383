import type { ChatRequest, FunctionTool, InnerTool, Native, ResponseFormat } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { DialectEndpoint } from '../dialect.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { withProperties } from '../shared/tool-schema.ts';
import { bareName, declaredTools, nameOf } from './declared.ts';
import type { Encoding } from './parts.ts';
import { restOf, WIRE, type WireItem } from './wire.ts';

/** The tools and how they may be chosen, as fields of the body. Without tools neither is there: it would be refused. */
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

/** The tools on this wire: those of one namespace, which stand together, are one tool. */
function inNamespaces(
  tools: readonly InnerTool[],
  encode: (tool: InnerTool, i: number) => JsonObject | undefined,
): JsonObject[] {
  const encoded: JsonObject[] = [];
  let open: { name: JsonValue | undefined; tools: JsonObject[] } | undefined;
  for (const [i, tool] of tools.entries()) {
    const made = encode(tool, i);
    if (made === undefined) continue;
    const { namespace, ...bare } = made;
    const told = asObject(namespace);
    if (told === undefined) {
      encoded.push(made);
      open = undefined;
    } else if (open !== undefined && open.name === told['name']) {
      open.tools.push(bare);
    } else {
      open = { name: told['name'], tools: [bare] };
      encoded.push({ ...told, tools: open.tools });
    }
  }
  return encoded;
}

/**
 * Tools of the provider's that it bills by something that no price list here has: sessions, searches of stored files, and
 * pictures, which are another model's (https://platform.openai.com/docs/pricing).
 */
const UNPRICED: ReadonlySet<string> = new Set(['image_generation', 'code_interpreter', 'file_search']);

function isUnpriced({ type, environment, tools }: JsonObject): boolean {
  if (type === 'namespace') return asArray(tools).some((tool) => isUnpriced(asObject(tool) ?? {}));
  // A shell is the client's own, unless it is in one of the provider's containers.
  if (type === 'shell') return asText(asObject(environment)?.['type']).startsWith('container');
  return UNPRICED.has(asText(type));
}

function encodeNative({ wire, block }: Native, field: string, encoding: Encoding): JsonObject | undefined {
  if (wire !== WIRE) {
    encoding.report('dropped', field, `a tool of ${wire} cannot be expressed in this provider's API`);
    return undefined;
  }
  if (!isUnpriced(block) || encoding.quirks.unpriced_tools) return block;
  encoding.report('dropped', field, `${asText(block['type'])} is billed by what has no price here`);
  return undefined;
}

/** Lists of tools that items bring along. */
function broughtBy({ type, tools }: WireItem): JsonValue[] | undefined {
  return type === 'additional_tools' || type === 'tool_search_output' ? asArray(tools) : undefined;
}

/** The items without tools that nobody has a price of. */
export function withoutUnpriced(items: readonly WireItem[], encoding: Encoding): WireItem[] {
  if (encoding.quirks.unpriced_tools) return [...items];
  return items.map((item, i) => {
    const tools = broughtBy(item);
    const kept = tools?.filter((tool) => !isUnpriced(asObject(tool) ?? {}));
    if (tools === undefined || kept === undefined || kept.length === tools.length) return item;
    encoding.report('dropped', `input[${i}].tools`, 'some of them have no known price');
    return { ...item, tools: kept };
  });
}

/** The kinds of tools that items bring along. */
export function broughtTools(items: readonly WireItem[]): JsonValue[] {
  return items.flatMap((item) => broughtBy(item) ?? []);
}

function encodeTool(tool: InnerTool, field: string, encoding: Encoding): JsonObject | undefined {
  if (tool.type === 'native') return encodeNative(tool as Native, field, encoding);
  if (tool.type !== 'function') {
    encoding.report('dropped', field, `${tool.type} is not run by this upstream`);
    return undefined;
  }
  const { function: told, ext } = tool as FunctionTool;
  const { via, ...rest } = restOf(ext);
  // It is in the conversation, where an item declares it.
  if (via === 'item') return undefined;
  const namespace = asText(asObject(rest['namespace'])?.['name']);
  const name = encoding.toolName(namespace === '' ? told.name : bareName(told.name, namespace));
  if (rest['type'] === 'custom') {
    return { ...rest, name, ...(told.description == null ? {} : { description: told.description }) };
  }
  return {
    ...rest,
    type: 'function',
    name,
    ...(told.description == null ? {} : { description: told.description }),
    parameters: told.parameters == null && 'parameters' in rest ? null : withProperties(told.parameters ?? {}),
    // Strict is the default here, and a schema that is not written for it is refused (translation 2.6).
    strict: told.strict ?? ('strict' in rest ? null : false),
  };
}

/** Which posts of X are searched: a tool of its own (https://docs.x.ai/docs/guides/tools/search-tools). */
function addXSearch(filter: unknown, tools: JsonObject[], provider: string, encoding: Encoding): void {
  const told = asObject(filter);
  if (told === undefined) return;
  if (!encoding.quirks.x_search) {
    encoding.report('dropped', 'x_search_filter', `${provider} does not search X`);
    return;
  }
  const at = tools.findIndex(({ type }) => type === 'x_search');
  const tool = { ...tools[at], type: 'x_search', ...remainder(told, []) };
  if (at === -1) tools.push(tool);
  else tools[at] = tool;
}

/** The search that the chat API asks for by a field of its own (https://platform.openai.com/docs/guides/tools-web-search). */
function webSearch(options: JsonObject | null | undefined): JsonObject | undefined {
  if (options == null) return undefined;
  const place = asObject(options['user_location']);
  const size = asText(options['search_context_size']);
  return {
    type: 'web_search',
    ...(size === '' ? {} : { search_context_size: size }),
    ...(place === undefined ? {} : { user_location: { type: 'approximate', ...asObject(place['approximate']) } }),
  };
}

function encodeChoice(request: ChatRequest, tools: JsonObject[], encoding: Encoding): JsonValue | undefined {
  const choice = request.tool_choice ?? undefined;
  if (choice === undefined || typeof choice === 'string') return choice;
  const told = choice as JsonObject;
  const declared = declaredTools(request.tools);
  const named = (entry: JsonObject): JsonObject => {
    const name = nameOf(entry);
    const tool = declared.get(name);
    return { type: tool?.is_custom ? 'custom' : 'function', name: encoding.toolName(tool?.name ?? name) };
  };
  switch (choice.type) {
    case 'function':
      return named(told);
    case 'allowed_tools': {
      // Both the flat and the nested form are in use.
      const list = asObject(told['allowed_tools']) ?? told;
      const allowed = asArray(list['tools']).map((entry) => {
        const tool = asObject(entry) ?? {};
        return tool['type'] === 'function' ? named(tool) : tool;
      });
      return { type: 'allowed_tools', mode: list['mode'] === 'required' ? 'required' : 'auto', tools: allowed };
    }
    default:
      if (tools.some(({ type }) => type === choice.type)) return told;
      encoding.report('dropped', 'tool_choice', 'this provider does not support this choice');
      return undefined;
  }
}

/** `text.format` for a response format; undefined where none is asked for or none is known. */
export function encodeFormat(wanted: ResponseFormat | null | undefined, encoding: Encoding): JsonObject | undefined {
  if (wanted == null || wanted.type === 'text') return undefined;
  if (wanted.type === 'json_object') return { type: 'json_object' };
  const told = asObject((wanted as JsonObject)['json_schema']);
  if (wanted.type !== 'json_schema' || told === undefined) {
    encoding.report('dropped', 'response_format', `this provider does not support the format ${wanted.type}`);
    return undefined;
  }
  const { name, description, strict, schema } = told;
  return {
    type: 'json_schema',
    name: asText(name) || 'response',
    schema: asObject(schema) ?? { type: 'object' },
    ...(description == null ? {} : { description }),
    ...(strict == null ? {} : { strict }),
  };
}
