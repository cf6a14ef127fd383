import type { ChatRequest, FunctionTool, InnerTool, Native, ResponseFormat } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { allowedMode, allowedTools } from '../shared/allowed-tools.ts';
import { asObject } from '../shared/json-shape.ts';
import { constrainSchema } from './schema.ts';
import { cacheHint, type Encoding } from './to-wire.ts';
import { restOf, WIRE, type WireBlock, type WireTool, type WireToolChoice } from './wire.ts';

/** The tools, the tool choice, and the output format, which may itself need a tool. */
export interface ToolPlan {
  tools: WireBlock[];
  tool_choice: WireToolChoice | undefined;
  /** Sent as `output_config.format`. */
  format: { type: 'json_schema'; schema: JsonObject } | undefined;
  /** A sentence for the system prompt, if the wire has no field for the format. */
  hint: string | undefined;
  /** The name of the tool whose input is the answer. */
  shim: string | undefined;
}

/** Plans tools and output format. `called` are the tools that the history calls; they must stay declared. */
export function planTools(
  request: ChatRequest,
  called: ReadonlySet<string>,
  isManualThinking: boolean,
  encoding: Encoding,
): ToolPlan {
  const allowed = allowedTools(request.tool_choice);
  const tools = (request.tools ?? []).flatMap((tool, i) => encodeTool(tool, `tools[${i}]`, allowed, encoding));
  let choice = encodeChoice(request, tools.length > 0, encoding);
  if (tools.length === 0 && called.size > 0) {
    // The wire requires the tools of the history to be declared; the client offers none, so none may be called.
    for (const name of called) tools.push(declare({ name: encoding.names.toWire(name), input_schema: EMPTY_SCHEMA }));
    choice = { type: 'none' };
  }
  const output = planOutput(request.response_format ?? undefined, tools, encoding);
  if (output.shim !== undefined && !isForced(choice)) {
    // With other callable tools, the answer is one call among them.
    const isOnlyTool = tools.length === 1 || choice?.type === 'none';
    choice = isOnlyTool ? { type: 'tool', name: output.shim } : { type: 'any' };
    if (isOnlyTool || request.parallel_tool_calls === false) choice.disable_parallel_tool_use = true;
  }
  return { tools, tool_choice: permitChoice(choice, isManualThinking, encoding), ...output };
}

/** The tools of a client of this wire, as it declared them. */
export function encodeOwnTools(tools: readonly InnerTool[], encoding: Encoding): WireBlock[] {
  return tools.flatMap((tool, i): WireBlock[] => {
    if (!isFunction(tool)) return encodeTool(tool, `tools[${i}]`, undefined, encoding);
    const { name, description, parameters, strict } = tool.function;
    const fields = {
      name,
      ...(description == null ? {} : { description }),
      input_schema: parameters ?? {},
      ...(strict == null ? {} : { strict }),
      ...cacheHint(tool.cache_control, true),
    };
    return [{ ...restOf(tool.ext), ...fields } as unknown as WireBlock];
  });
}

const EMPTY_SCHEMA = { type: 'object' } as const;

function declare(tool: WireTool, rest: JsonObject = {}): WireBlock {
  // A client's own tool needs no type; the static type requires one.
  return { ...rest, ...tool } as unknown as WireBlock;
}

function encodeTool(
  tool: InnerTool,
  field: string,
  allowed: ReadonlySet<string> | undefined,
  encoding: Encoding,
): WireBlock[] {
  if (isNative(tool)) {
    if (tool.wire === WIRE) return [tool.block as WireBlock];
    encoding.addReport('dropped', field, `a tool of ${tool.wire} cannot be expressed in this provider's API`);
    return [];
  }
  if (!isFunction(tool)) {
    encoding.addReport('dropped', field, `${tool.type} is not run by this upstream`);
    return [];
  }
  const { name, description, parameters, strict } = tool.function;
  if (allowed !== undefined && !allowed.has(name)) return [];
  const isStrict = strict === true && encoding.quirks.json_schema_shim !== true;
  if (strict === true && !isStrict)
    encoding.addReport('dropped', `${field}.function.strict`, 'the model has no strict tools');
  const schema = isStrict ? constrainSchema(parameters ?? {}) : (parameters ?? {});
  return [
    declare(
      {
        name: encoding.names.toWire(name),
        ...(description == null ? {} : { description }),
        input_schema: { ...schema, type: 'object' },
        ...(isStrict ? { strict: true } : {}),
        ...cacheHint(tool.cache_control),
      },
      restOf(tool.ext),
    ),
  ];
}

function isNative(tool: InnerTool): tool is Native {
  return tool.type === 'native';
}

function isFunction(tool: InnerTool): tool is FunctionTool {
  return tool.type === 'function';
}

function encodeChoice(request: ChatRequest, hasTools: boolean, encoding: Encoding): WireToolChoice | undefined {
  if (!hasTools) return undefined;
  const isSerial = request.parallel_tool_calls === false;
  const serial = isSerial ? { disable_parallel_tool_use: true } : {};
  const choice = request.tool_choice ?? undefined;
  switch (typeof choice === 'object' ? choice.type : choice) {
    case undefined:
      return isSerial ? { type: 'auto', ...serial } : undefined;
    case 'auto':
      return { type: 'auto', ...serial };
    case 'none':
      return { type: 'none' };
    case 'required':
      return { type: 'any', ...serial };
    case 'function': {
      const name = asObject((choice as JsonObject)['function'])?.['name'];
      return { type: 'tool', name: encoding.names.toWire(String(name)), ...serial };
    }
    case 'allowed_tools':
      return { type: allowedMode(choice) === 'required' ? 'any' : 'auto', ...serial };
    default:
      encoding.addReport('dropped', 'tool_choice', 'this provider does not support this choice');
      return isSerial ? { type: 'auto', ...serial } : undefined;
  }
}

function isForced(choice: WireToolChoice | undefined): boolean {
  return choice?.type === 'any' || choice?.type === 'tool';
}

/** Manual thinking and some models refuse a forced call; adaptive thinking accepts it. */
function permitChoice(
  choice: WireToolChoice | undefined,
  isManualThinking: boolean,
  encoding: Encoding,
): WireToolChoice | undefined {
  if (choice === undefined || !isForced(choice)) return choice;
  const isRefused = encoding.quirks.no_forced_tool === true;
  if (!isRefused && !isManualThinking) return choice;
  encoding.addReport('clamped', 'tool_choice', `${isRefused ? 'the model' : 'reasoning'} allows no forced tool: auto`);
  const { disable_parallel_tool_use: disableParallelToolUse } = choice as { disable_parallel_tool_use?: boolean };
  return disableParallelToolUse === true
    ? { type: 'auto', disable_parallel_tool_use: disableParallelToolUse }
    : { type: 'auto' };
}

function planOutput(
  requested: ResponseFormat | undefined,
  tools: WireBlock[],
  encoding: Encoding,
): Pick<ToolPlan, 'format' | 'hint' | 'shim'> {
  const plan: Pick<ToolPlan, 'format' | 'hint' | 'shim'> = { format: undefined, hint: undefined, shim: undefined };
  if (requested === undefined || requested.type === 'text') return plan;
  const jsonSchema = asObject((requested as JsonObject)['json_schema']);
  const schema = requested.type === 'json_schema' ? (asObject(jsonSchema?.['schema']) ?? undefined) : undefined;
  if (requested.type !== 'json_schema' && requested.type !== 'json_object') {
    encoding.addReport('dropped', 'response_format', `this provider does not support the format ${requested.type}`);
    return plan;
  }
  if (encoding.quirks.json_schema_shim === true) {
    const names = new Set(tools.map((tool) => tool['name']));
    let name = 'json_response';
    while (names.has(name)) name += '_';
    const description = jsonSchema?.['description'];
    tools.push(
      declare({
        name,
        description: typeof description === 'string' ? description : 'Answer the user by calling this tool.',
        input_schema: { ...schema, type: 'object' },
      }),
    );
    encoding.addReport('changed', 'response_format', 'the model has no JSON output: a tool replaces it');
    return { ...plan, shim: name };
  }
  if (schema === undefined) {
    encoding.addReport(
      'changed',
      'response_format',
      'this provider has no free JSON output: it is requested in the system prompt',
    );
    return { ...plan, hint: 'Answer with one JSON object and nothing else.' };
  }
  return { ...plan, format: { type: 'json_schema', schema: constrainSchema(schema) } };
}
