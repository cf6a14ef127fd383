import type { ChatRequest, FunctionTool, InnerTool, Native, ResponseFormat } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { constrainSchema } from '../anthropic-messages/schema.ts';
import { allowedMode, allowedTools } from '../shared/allowed-tools.ts';
import { asObject } from '../shared/json-shape.ts';
import { NO_FIELD } from '../shared/reports.ts';
import { cachePoint } from './caching.ts';
import type { Encoding } from './encoding.ts';
import { type Family, isNova } from './family.ts';
import { novaSchema } from './nova-schema.ts';
import { restOf, WIRE, type WireBlock, type WireRequest, type WireTextFormat, type WireToolChoice } from './wire.ts';

/** The tools, how they may be chosen, and the output format, which may itself need a tool. */
export interface ToolPlan {
  toolConfig: WireRequest['toolConfig'];
  textFormat: WireTextFormat | undefined;
  /** A sentence for the system prompt, where the wire has no field for the wish. */
  hint: string | undefined;
  /** The name of the tool whose input is the answer. */
  shim: string | undefined;
}

/** Models whose call can be forced (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolChoice.html). */
const TAKES_ANY: ReadonlySet<Family> = new Set(['claude', 'nova', 'nova-2', 'mistral']);
const TAKES_TOOL: ReadonlySet<Family> = new Set(['claude', 'nova', 'nova-2']);
/** Models without constrained output (https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html). */
const FREE_OUTPUT: ReadonlySet<Family> = new Set(['nova', 'nova-2', 'llama']);

/** `called` are the tools that the history calls: the service wants them declared. */
export function planTools(
  request: ChatRequest,
  called: ReadonlySet<string>,
  isManualThinking: boolean,
  encoding: Encoding,
): ToolPlan {
  const allowed = allowedTools(request.tool_choice);
  let tools = (request.tools ?? []).flatMap((tool, i) => encodeTool(tool, `tools[${i}]`, allowed, encoding));
  let choice = encodeChoice(request, encoding);
  if (request.tool_choice === 'none' && tools.length > 0) {
    if (called.size === 0) tools = [];
    else encoding.report('changed', 'tool_choice', 'this upstream cannot forbid calls of tools that it must know');
  }
  if (tools.length === 0 && called.size > 0) {
    for (const name of called) tools.push(declare({ name: encoding.names.toWire(name), inputSchema: EMPTY_SCHEMA }));
    encoding.report('changed', 'tools', 'this upstream wants the tools of former calls declared');
  }
  if (request.parallel_tool_calls === false && tools.length > 0) {
    encoding.report('dropped', 'parallel_tool_calls', NO_FIELD);
  }
  const output = planOutput(request.response_format ?? undefined, tools, encoding);
  if (output.shim !== undefined && choice === undefined) {
    choice = tools.length === 1 ? { tool: { name: output.shim } } : { any: {} };
  }
  if (tools.length === 0) return { toolConfig: undefined, ...output };
  const toolChoice = permitChoice(choice, tools, isManualThinking, encoding);
  return { toolConfig: { tools, ...(toolChoice === undefined ? {} : { toolChoice }) }, ...output };
}

type ToolSpec = {
  name: string;
  description?: string;
  inputSchema: { json: JsonObject };
  strict?: boolean;
};
const EMPTY_SCHEMA = { json: { type: 'object', properties: {} } } as const;

function declare(toolSpec: ToolSpec, rest: JsonObject = {}): WireBlock {
  return { toolSpec: { ...rest, ...toolSpec } };
}

function encodeTool(
  tool: InnerTool,
  field: string,
  allowed: ReadonlySet<string> | undefined,
  encoding: Encoding,
): WireBlock[] {
  if (isNative(tool)) {
    if (tool.wire === WIRE) return [tool.block];
    encoding.report('dropped', field, `a tool of ${tool.wire} cannot be expressed in this provider's API`);
    return [];
  }
  if (!isFunction(tool)) {
    encoding.report('dropped', field, `${tool.type} is not run by this upstream`);
    return [];
  }
  const { name, description, parameters, strict } = tool.function;
  if (allowed !== undefined && !allowed.has(name)) return [];
  const isStrict = strict === true && encoding.family === 'claude' && encoding.quirks.json_schema_shim !== true;
  if (strict === true && !isStrict) {
    encoding.report('dropped', `${field}.function.strict`, 'the model has no strict tools');
  }
  const schema = isStrict ? constrainSchema(parameters ?? {}) : (parameters ?? {});
  const spec = declare(
    {
      name: encoding.names.toWire(name),
      ...(description ? { description } : {}),
      inputSchema: inputSchema(schema, `${field}.function.parameters`, encoding),
      ...(isStrict ? { strict: true } : {}),
    },
    restOf(tool.ext),
  );
  return [spec, ...cachePoint(tool.cache_control, 'tools', encoding)];
}

/** The schema of a tool as the model takes it; the top is always an object. */
function inputSchema(schema: JsonObject, field: string, { family, report }: Encoding): { json: JsonObject } {
  if (!isNova(family)) return { json: { ...schema, type: 'object' } };
  const { schema: json, left_out: leftOut } = novaSchema(schema);
  if (leftOut.length > 0) report('dropped', field, `the model takes no ${leftOut.join(', ')} at a schema's top`);
  return { json };
}

function isNative(tool: InnerTool): tool is Native {
  return tool.type === 'native';
}

function isFunction(tool: InnerTool): tool is FunctionTool {
  return tool.type === 'function';
}

/** Undefined leaves the choice to the model, which is the default. */
function encodeChoice({ tool_choice: toolChoice }: ChatRequest, encoding: Encoding): WireToolChoice | undefined {
  const choice = toolChoice ?? undefined;
  switch (typeof choice === 'object' ? choice.type : choice) {
    case undefined:
    case 'auto':
    case 'none':
      return undefined;
    case 'required':
      return { any: {} };
    case 'function': {
      const name = asObject((choice as JsonObject)['function'])?.['name'];
      return { tool: { name: encoding.names.toWire(String(name)) } };
    }
    case 'allowed_tools':
      return allowedMode(choice) === 'required' ? { any: {} } : undefined;
    default:
      encoding.report('dropped', 'tool_choice', 'this provider does not support this choice');
      return undefined;
  }
}

/** Brings a forced call into what the model takes; manual thinking takes none. */
function permitChoice(
  choice: WireToolChoice | undefined,
  tools: WireBlock[],
  isManualThinking: boolean,
  { family, quirks, report }: Encoding,
): WireToolChoice | undefined {
  if (choice === undefined) return undefined;
  if (isManualThinking || quirks.no_forced_tool === true) {
    report('clamped', 'tool_choice', `${isManualThinking ? 'reasoning' : 'the model'} allows no forced tool: auto`);
    return undefined;
  }
  if ('tool' in choice && !TAKES_TOOL.has(family)) {
    const { name } = choice.tool;
    // The one tool that is left is the one that any call calls.
    const others = tools.filter((tool) => asObject(tool['toolSpec'])?.['name'] !== name);
    for (const other of others) tools.splice(tools.indexOf(other), 1);
    if (others.length > 0)
      report('changed', 'tools', 'the model cannot be forced to call one tool: the others are removed');
  }
  if (TAKES_TOOL.has(family)) return choice;
  if (TAKES_ANY.has(family)) return { any: {} };
  report('clamped', 'tool_choice', 'the model does not allow a forced tool: auto was used');
  return undefined;
}

function planOutput(
  wanted: ResponseFormat | undefined,
  tools: WireBlock[],
  encoding: Encoding,
): Pick<ToolPlan, 'textFormat' | 'hint' | 'shim'> {
  const plan: Pick<ToolPlan, 'textFormat' | 'hint' | 'shim'> = {
    textFormat: undefined,
    hint: undefined,
    shim: undefined,
  };
  if (wanted === undefined || wanted.type === 'text') return plan;
  if (wanted.type !== 'json_schema' && wanted.type !== 'json_object') {
    encoding.report('dropped', 'response_format', `this provider does not support the format ${wanted.type}`);
    return plan;
  }
  const { family, quirks } = encoding;
  const told = asObject((wanted as JsonObject)['json_schema']);
  const schema = wanted.type === 'json_schema' ? asObject(told?.['schema']) : undefined;
  const isFree = quirks.json_schema_shim === true || FREE_OUTPUT.has(family);
  if (isFree && TAKES_TOOL.has(family)) return { ...plan, shim: addShim(tools, schema, told, encoding) };
  if (schema === undefined || isFree) {
    encoding.report(
      'changed',
      'response_format',
      'this provider has no such output: it is requested in the system prompt',
    );
    const form = schema === undefined ? '' : ` It must satisfy this JSON schema: ${JSON.stringify(schema)}`;
    return { ...plan, hint: `Answer with one JSON object and nothing else.${form}` };
  }
  const { name, description } = told ?? {};
  const jsonSchema = {
    ...(typeof name === 'string' && name !== '' ? { name } : {}),
    ...(typeof description === 'string' && description !== '' ? { description } : {}),
    schema: JSON.stringify(family === 'claude' ? constrainSchema(schema) : schema),
  };
  return { ...plan, textFormat: { type: 'json_schema', structure: { jsonSchema } } };
}

/** A tool whose input is the answer. */
function addShim(
  tools: WireBlock[],
  schema: JsonObject | undefined,
  told: JsonObject | undefined,
  encoding: Encoding,
): string {
  const names = new Set(tools.map((tool) => asObject(tool['toolSpec'])?.['name']));
  let name = 'json_response';
  while (names.has(name)) name += '_';
  const description = told?.['description'];
  tools.push(
    declare({
      name,
      description: typeof description === 'string' && description !== '' ? description : 'Answer by calling this tool.',
      inputSchema: inputSchema(schema ?? {}, 'response_format.json_schema.schema', encoding),
    }),
  );
  encoding.report('changed', 'response_format', 'the model has no JSON output: a tool replaces it');
  return name;
}
