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

/** The tools, the tool choice, and the output format, which may itself need a tool. */
export interface ToolPlan {
  toolConfig: WireRequest['toolConfig'];
  textFormat: WireTextFormat | undefined;
  /** A sentence for the system prompt, if the wire has no field for the format. */
  hint: string | undefined;
  /** The name of the tool whose input is the answer. */
  shim: string | undefined;
}

/** Models that accept a forced call (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolChoice.html). */
const ACCEPTS_ANY: ReadonlySet<Family> = new Set(['claude', 'nova', 'nova-2', 'mistral']);
const ACCEPTS_TOOL: ReadonlySet<Family> = new Set(['claude', 'nova', 'nova-2']);
/** Models without constrained output (https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html). */
const FREE_OUTPUT: ReadonlySet<Family> = new Set(['nova', 'nova-2', 'llama']);

/** Plans tools and output format. `called` are the tools that the history calls, which the service requires to be declared. */
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
    else encoding.addReport('changed', 'tool_choice', 'this upstream cannot forbid calls of tools that it must know');
  }
  if (tools.length === 0 && called.size > 0) {
    for (const name of called) tools.push(declare({ name: encoding.names.toWire(name), inputSchema: EMPTY_SCHEMA }));
    encoding.addReport('changed', 'tools', 'this upstream requires the tools of former calls to be declared');
  }
  if (request.parallel_tool_calls === false && tools.length > 0) {
    encoding.addReport('dropped', 'parallel_tool_calls', NO_FIELD);
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
    encoding.addReport('dropped', field, `a tool of ${tool.wire} cannot be expressed in this provider's API`);
    return [];
  }
  if (!isFunction(tool)) {
    encoding.addReport('dropped', field, `${tool.type} is not run by this upstream`);
    return [];
  }
  const { name, description, parameters, strict } = tool.function;
  if (allowed !== undefined && !allowed.has(name)) return [];
  const isStrict = strict === true && encoding.family === 'claude' && encoding.quirks.json_schema_shim !== true;
  if (strict === true && !isStrict) {
    encoding.addReport('dropped', `${field}.function.strict`, 'the model has no strict tools');
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

/** The schema of a tool in the form that the model accepts; its top is always an object. */
function inputSchema(schema: JsonObject, field: string, { family, addReport }: Encoding): { json: JsonObject } {
  if (!isNova(family)) return { json: { ...schema, type: 'object' } };
  const { schema: json, left_out: leftOut } = novaSchema(schema);
  if (leftOut.length > 0)
    addReport('dropped', field, `the model accepts no ${leftOut.join(', ')} at the top of a schema`);
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
      encoding.addReport('dropped', 'tool_choice', 'this provider does not support this choice');
      return undefined;
  }
}

/** Changes a forced call to one that the model accepts; manual thinking accepts none. */
function permitChoice(
  choice: WireToolChoice | undefined,
  tools: WireBlock[],
  isManualThinking: boolean,
  { family, quirks, addReport }: Encoding,
): WireToolChoice | undefined {
  if (choice === undefined) return undefined;
  if (isManualThinking || quirks.no_forced_tool === true) {
    addReport('clamped', 'tool_choice', `${isManualThinking ? 'reasoning' : 'the model'} allows no forced tool: auto`);
    return undefined;
  }
  if ('tool' in choice && !ACCEPTS_TOOL.has(family)) {
    const { name } = choice.tool;
    // If only one tool is left, any call calls it.
    const others = tools.filter((tool) => asObject(tool['toolSpec'])?.['name'] !== name);
    for (const other of others) tools.splice(tools.indexOf(other), 1);
    if (others.length > 0)
      addReport('changed', 'tools', 'the model cannot be forced to call one tool: the others are removed');
  }
  if (ACCEPTS_TOOL.has(family)) return choice;
  if (ACCEPTS_ANY.has(family)) return { any: {} };
  addReport('clamped', 'tool_choice', 'the model does not allow a forced tool: auto was used');
  return undefined;
}

function planOutput(
  requested: ResponseFormat | undefined,
  tools: WireBlock[],
  encoding: Encoding,
): Pick<ToolPlan, 'textFormat' | 'hint' | 'shim'> {
  const plan: Pick<ToolPlan, 'textFormat' | 'hint' | 'shim'> = {
    textFormat: undefined,
    hint: undefined,
    shim: undefined,
  };
  if (requested === undefined || requested.type === 'text') return plan;
  if (requested.type !== 'json_schema' && requested.type !== 'json_object') {
    encoding.addReport('dropped', 'response_format', `this provider does not support the format ${requested.type}`);
    return plan;
  }
  const { family, quirks } = encoding;
  const jsonSchemaFormat = asObject((requested as JsonObject)['json_schema']);
  const schema = requested.type === 'json_schema' ? asObject(jsonSchemaFormat?.['schema']) : undefined;
  const isFree = quirks.json_schema_shim === true || FREE_OUTPUT.has(family);
  if (isFree && ACCEPTS_TOOL.has(family)) return { ...plan, shim: addShim(tools, schema, jsonSchemaFormat, encoding) };
  if (schema === undefined || isFree) {
    encoding.addReport(
      'changed',
      'response_format',
      'this provider has no such output: it is requested in the system prompt',
    );
    const form = schema === undefined ? '' : ` It must satisfy this JSON schema: ${JSON.stringify(schema)}`;
    return { ...plan, hint: `Answer with one JSON object and nothing else.${form}` };
  }
  const { name, description } = jsonSchemaFormat ?? {};
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
  format: JsonObject | undefined,
  encoding: Encoding,
): string {
  const names = new Set(tools.map((tool) => asObject(tool['toolSpec'])?.['name']));
  let name = 'json_response';
  while (names.has(name)) name += '_';
  const description = format?.['description'];
  tools.push(
    declare({
      name,
      description: typeof description === 'string' && description !== '' ? description : 'Answer by calling this tool.',
      inputSchema: inputSchema(schema ?? {}, 'response_format.json_schema.schema', encoding),
    }),
  );
  encoding.addReport('changed', 'response_format', 'the model has no JSON output: a tool replaces it');
  return name;
}
