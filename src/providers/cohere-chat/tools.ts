import type { ChatRequest, FunctionTool, InnerTool, ToolChoice } from '../../schemas/inner.ts';
import { allowedMode, allowedTools } from '../shared/allowed-tools.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import { NO_FIELD } from '../shared/reports.ts';
import type { Encoding } from './encoding.ts';
import type { WireRequest, WireTool } from './wire.ts';

/** The tools that may be called and the tool choice; empty if there are none. */
export function planTools(
  request: ChatRequest,
  encoding: Encoding,
): Pick<WireRequest, 'tools' | 'strict_tools' | 'tool_choice'> {
  const declared = (request.tools ?? []).flatMap((tool, i) => functionOf(tool, `tools[${i}]`, encoding) ?? []);
  const { mode, only } = choiceOf(request.tool_choice);
  // The wire can force any tool or none, but not one by name: the others are left out.
  const offered = only === undefined ? declared : declared.filter(({ name }) => only.includes(name));
  if (offered.length === 0) return {};
  if (request.parallel_tool_calls === false) {
    encoding.addReport('dropped', 'parallel_tool_calls', NO_FIELD);
  }
  return {
    tools: offered.map((definition) => toolOf(definition, encoding)),
    ...strictness(offered, encoding),
    ...(mode === undefined ? {} : { tool_choice: mode }),
  };
}

function functionOf(tool: InnerTool, field: string, encoding: Encoding): FunctionTool['function'] | undefined {
  const definition = tool.type === 'function' ? (tool as Partial<FunctionTool>).function : undefined;
  if (definition === undefined) encoding.addReport('dropped', field, 'this upstream calls functions only');
  else if ((tool as FunctionTool).cache_control != null) {
    encoding.addReport('dropped', `${field}.cache_control`, 'this upstream has no cache breakpoints');
  }
  return definition;
}

function toolOf({ name, description, parameters }: FunctionTool['function'], encoding: Encoding): WireTool {
  return {
    type: 'function',
    function: {
      name: encoding.toolName(name),
      ...(description ? { description } : {}),
      // The reference requires parameters for every tool.
      parameters: parameters ?? { type: 'object', properties: {} },
    },
  };
}

/** One switch for all tools, each of which then needs a required parameter (https://docs.cohere.com/docs/structured-outputs-json). */
function strictness(tools: readonly FunctionTool['function'][], encoding: Encoding): { strict_tools?: true } {
  if (!tools.some(({ strict }) => strict === true)) return {};
  const areAll = tools.every(
    ({ strict, parameters }) => strict === true && asArray(parameters?.['required']).length > 0,
  );
  if (areAll) return { strict_tools: true };
  encoding.addReport('dropped', 'tools[].strict', 'strict for all tools or none, each with a required parameter');
  return {};
}

/** The tool choice. Without a mode the model decides. */
function choiceOf(choice: ToolChoice | null | undefined): { mode?: 'REQUIRED' | 'NONE'; only?: string[] } {
  if (choice === 'none') return { mode: 'NONE' };
  if (choice === 'required') return { mode: 'REQUIRED' };
  const object = asObject(choice);
  const name = asObject(object?.['function'])?.['name'];
  if (typeof name === 'string') return { mode: 'REQUIRED', only: [name] };
  const allowed = allowedTools(choice);
  if (allowed === undefined) return {};
  return { ...(allowedMode(choice) === 'required' ? { mode: 'REQUIRED' as const } : {}), only: [...allowed] };
}
