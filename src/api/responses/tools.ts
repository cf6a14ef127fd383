import { invalidField } from '../../errors.ts';
import { limits } from '../../limits.ts';
import {
  declaredTools,
  decodeToolChoice,
  decodeTools,
  toolsOfItems,
} from '../../providers/openai-responses/declared.ts';
import { append } from '../../schemas/append.ts';
import type { ChatRequest, FunctionTool, InnerTool, ToolChoice } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { ResponsesRequestBody } from '../../schemas/responses.ts';

type Tools = Pick<ChatRequest, 'tools' | 'tool_choice'>;

/** The tools of a request, and the tool choice. Throws a `GatewayError` 400 that names the tool. */
export function requestTools({ tools, tool_choice, input }: ResponsesRequestBody): Tools {
  const made: Tools = {};
  const listed = (tools ?? []) as unknown as JsonObject[];
  const declared = decodeTools(listed.map((tool, i) => flat(tool, `tools[${i}]`)));
  append(declared, toolsOfItems(Array.isArray(input) ? (input as unknown as JsonValue[]) : [], declared));
  if (declared.length > limits.tools_max) {
    const rule = `must have at most ${limits.tools_max} items, including those of namespaces and of input`;
    throw invalidField('tools', rule);
  }
  if (declared.length > 0) made.tools = declared;
  const choice = decodeToolChoice(byInnerNames(tool_choice as JsonValue | undefined, declared));
  // Without tools there is no choice.
  if (choice === undefined || declared.length === 0) return made;
  checkChoice(choice, declared);
  return { ...made, tool_choice: choice };
}

/** The tool choice with the inner names of tools in namespaces. */
function byInnerNames(choice: JsonValue | undefined, tools: readonly InnerTool[]): JsonValue | undefined {
  if (typeof choice !== 'object' || choice === null || Array.isArray(choice)) return choice ?? undefined;
  const declared = [...declaredTools(tools)];
  const named = (entry: JsonObject): JsonObject[] => {
    const { type, name, namespace } = entry;
    if (type === 'namespace') {
      return declared.flatMap(([inner, tool]) =>
        tool.namespace === name ? [{ type: tool.is_custom ? 'custom' : 'function', name: inner }] : [],
      );
    }
    if (typeof name !== 'string' || (namespace == null && declared.some(([inner]) => inner === name))) return [entry];
    const [inner] =
      declared.find(
        ([, tool]) =>
          tool.namespace !== undefined && tool.name === name && (namespace ?? tool.namespace) === tool.namespace,
      ) ?? [];
    return inner === undefined ? [entry] : [{ type: type ?? 'function', name: inner }];
  };
  if (choice['type'] === 'function' || choice['type'] === 'custom') return named(choice)[0];
  if (choice['type'] !== 'allowed_tools' || !Array.isArray(choice['tools'])) return choice;
  return { ...choice, tools: choice['tools'].flatMap((entry) => named(entry as JsonObject)) };
}

/** A function tool in the form of this API. Some clients use the form of chat completions. */
function flat(tool: JsonObject, field: string): JsonObject {
  const { type = 'function', function: nested, ...rest } = tool;
  if (type !== 'function') return tool;
  const made: JsonObject = { ...rest, ...((nested ?? {}) as JsonObject), type };
  if (typeof made['name'] !== 'string') throw invalidField(`${field}.name`, 'is required');
  return made;
}

/** Checks that a chosen function is declared. Only the upstream knows whether tools of other kinds are. */
function checkChoice(choice: ToolChoice, declared: readonly InnerTool[]): void {
  if (typeof choice === 'string' || choice.type !== 'function') return;
  const { name } = (choice as { function: { name: string } }).function;
  if (name === '') throw invalidField('tool_choice.name', 'is required');
  if (!declared.some((tool) => tool.type === 'function' && (tool as FunctionTool).function.name === name)) {
    throw invalidField('tool_choice.name', 'must be the name of a tool in tools');
  }
}
