import type { ChatRequest, FunctionTool, InnerTool, Native, ResponseFormat } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText } from '../json-shape.ts';
import type { Encoding } from './parts.ts';
import { restOf, WIRE } from './wire.ts';

/** The tools and how they may be chosen, as fields of the body. Without tools neither is there: it would be refused. */
export function encodeTools(request: ChatRequest, encoding: Encoding): JsonObject {
  const tools = (request.tools ?? [])
    .map((tool, i) => encodeTool(tool, `tools[${i}]`, encoding))
    .filter((tool) => tool !== undefined);
  const search = webSearch(request.web_search_options);
  if (search !== undefined && !tools.some(({ type }) => asText(type).startsWith('web_search'))) tools.push(search);
  if (tools.length === 0) return {};
  const choice = encodeChoice(request, tools, encoding);
  return {
    tools,
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(request.parallel_tool_calls == null ? {} : { parallel_tool_calls: request.parallel_tool_calls }),
  };
}

function encodeTool(tool: InnerTool, field: string, encoding: Encoding): JsonObject | undefined {
  if (tool.type === 'native') {
    const { wire, block } = tool as Native;
    if (wire === WIRE) return block;
    encoding.report('dropped', field, `a tool of ${wire} has no place in this upstream's language`);
    return undefined;
  }
  if (tool.type !== 'function') {
    encoding.report('dropped', field, `${tool.type} is not run by this upstream`);
    return undefined;
  }
  const { function: told, ext } = tool as FunctionTool;
  return {
    ...restOf(ext),
    type: 'function',
    name: encoding.toolName(told.name),
    ...(told.description == null ? {} : { description: told.description }),
    parameters: told.parameters ?? { type: 'object', properties: {} },
    // Strict is the default here, and a schema that is not written for it is refused (translation 2.6).
    strict: told.strict ?? ('strict' in restOf(ext) ? null : false),
  };
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
  switch (choice.type) {
    case 'function':
      return { type: 'function', name: encoding.toolName(nameOf(told)) };
    case 'allowed_tools': {
      // Both the flat and the nested form are in use.
      const list = asObject(told['allowed_tools']) ?? told;
      const allowed = asArray(list['tools']).map((entry) => {
        const tool = asObject(entry) ?? {};
        const name = nameOf(tool);
        return tool['type'] === 'function' ? { type: 'function', name: encoding.toolName(name) } : tool;
      });
      return { type: 'allowed_tools', mode: list['mode'] === 'required' ? 'required' : 'auto', tools: allowed };
    }
    default:
      if (tools.some(({ type }) => type === choice.type)) return told;
      encoding.report('dropped', 'tool_choice', 'this upstream knows no such choice');
      return undefined;
  }
}

/** A function's name, nested as chat has it or flat as this wire does. */
function nameOf(told: JsonObject): string {
  return asText(asObject(told['function'])?.['name'] ?? told['name']);
}

/** `text.format` for a response format; undefined where none is asked for or none is known. */
export function encodeFormat(wanted: ResponseFormat | null | undefined, encoding: Encoding): JsonObject | undefined {
  if (wanted == null || wanted.type === 'text') return undefined;
  if (wanted.type === 'json_object') return { type: 'json_object' };
  const told = asObject((wanted as JsonObject)['json_schema']);
  if (wanted.type !== 'json_schema' || told === undefined) {
    encoding.report('dropped', 'response_format', `this upstream knows no format ${wanted.type}`);
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
