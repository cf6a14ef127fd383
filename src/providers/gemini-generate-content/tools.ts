import type { ChatRequest, FunctionTool, InnerTool, Native } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { allowedMode, allowedTools } from '../shared/allowed-tools.ts';
import { asObject } from '../shared/json-shape.ts';
import type { Encoding } from './encoding.ts';
import {
  restOf,
  WIRE,
  type WireCallingConfig,
  type WireDeclaration,
  type WireGenerationConfig,
  type WireTool,
  type WireToolConfig,
} from './wire.ts';

/** The tools, how they may be chosen, and the output format, which may itself need a tool. */
export interface ToolPlan {
  tools: WireTool[];
  toolConfig: WireToolConfig | undefined;
  format: Pick<WireGenerationConfig, 'responseMimeType' | 'responseJsonSchema'>;
  /** The name of the function whose arguments are the answer. */
  shim: string | undefined;
}

/** Plans all that concerns tools and JSON output. */
export function planTools(request: ChatRequest, encoding: Encoding): ToolPlan {
  const allowed = allowedTools(request.tool_choice);
  const declarations: WireDeclaration[] = [];
  const natives: WireTool[] = [];
  let isStrict = true;
  for (const [i, tool] of (request.tools ?? []).entries()) {
    const field = `tools[${i}]`;
    if (isNative(tool)) {
      if (tool.wire === WIRE) natives.push(tool.block);
      else encoding.report('dropped', field, `a tool of ${tool.wire} cannot be expressed in this provider's API`);
    } else if (!isFunction(tool)) {
      encoding.report('dropped', field, `${tool.type} is not run by this upstream`);
    } else if (allowed === undefined || allowed.has(tool.function.name)) {
      declarations.push(declare(tool, encoding));
      isStrict &&= tool.function.strict === true;
    }
  }
  let choice = declarations.length > 0 ? encodeChoice(request, isStrict, encoding) : undefined;
  if (declarations.length > 0 && request.parallel_tool_calls === false) {
    encoding.report('dropped', 'parallel_tool_calls', 'this provider decides by itself how many calls it makes');
  }
  const output = planOutput(request, declarations, encoding);
  if (output.shim !== undefined && choice?.mode !== 'ANY') {
    // Beside functions that may be called, the answer is one call among them.
    const isAlone = declarations.length === 1 || choice?.mode === 'NONE';
    choice = isAlone ? { mode: 'ANY', allowedFunctionNames: [output.shim] } : { mode: 'ANY' };
  }
  const tools = declarations.length > 0 ? [{ functionDeclarations: declarations }, ...natives] : natives;
  return { tools, toolConfig: configOf(choice, natives, encoding), ...output };
}

function configOf(
  choice: WireCallingConfig | undefined,
  natives: readonly WireTool[],
  { facts, is_cloud: isCloud }: Encoding,
): WireToolConfig | undefined {
  // What Google's own tools did must be told to be sent back (translation table 2.10); Vertex AI does without.
  const isTold = natives.length > 0 && !isCloud && facts.generation !== undefined && facts.generation >= 3;
  if (choice === undefined && !isTold) return undefined;
  return {
    ...(choice === undefined ? {} : { functionCallingConfig: choice }),
    ...(isTold ? { includeServerSideToolInvocations: true } : {}),
  };
}

function declare({ function: { name, description, parameters }, ext }: FunctionTool, { names }: Encoding) {
  // The schema as it is: the full language, references included, is taken under this name.
  const told: WireDeclaration = { name: names.toWire(name) };
  if (description != null) told.description = description;
  if (parameters != null && Object.keys(parameters).length > 0) told.parametersJsonSchema = parameters;
  return { ...restOf(ext), ...told };
}

function isNative(tool: InnerTool): tool is Native {
  return tool.type === 'native';
}

function isFunction(tool: InnerTool): tool is FunctionTool {
  return tool.type === 'function';
}

/** https://ai.google.dev/gemini-api/docs/function-calling#function_calling_modes */
function encodeChoice(request: ChatRequest, isStrict: boolean, encoding: Encoding): WireCallingConfig | undefined {
  const choice = request.tool_choice ?? undefined;
  const automatic: WireCallingConfig | undefined = isStrict ? { mode: 'VALIDATED' } : undefined;
  switch (typeof choice === 'object' ? choice.type : choice) {
    case undefined:
    case 'auto':
      return automatic;
    case 'none':
      return { mode: 'NONE' };
    case 'required':
      return { mode: 'ANY' };
    case 'function': {
      const name = asObject((choice as JsonObject)['function'])?.['name'];
      return { mode: 'ANY', allowedFunctionNames: [encoding.names.toWire(String(name))] };
    }
    case 'allowed_tools':
      return allowedMode(choice) === 'required' ? { mode: 'ANY' } : automatic;
    default:
      encoding.report('dropped', 'tool_choice', 'this provider does not support this choice');
      return automatic;
  }
}

function planOutput(
  { response_format: wanted }: ChatRequest,
  declarations: WireDeclaration[],
  encoding: Encoding,
): Pick<ToolPlan, 'format' | 'shim'> {
  if (wanted == null || wanted.type === 'text') return { format: {}, shim: undefined };
  if (wanted.type !== 'json_schema' && wanted.type !== 'json_object') {
    encoding.report('dropped', 'response_format', `this provider does not support the format ${wanted.type}`);
    return { format: {}, shim: undefined };
  }
  const told = asObject((wanted as JsonObject)['json_schema']);
  const schema = wanted.type === 'json_schema' ? asObject(told?.['schema']) : undefined;
  if (declarations.length === 0 || encoding.facts.is_json_with_tools) {
    return {
      format: { responseMimeType: 'application/json', ...(schema === undefined ? {} : { responseJsonSchema: schema }) },
      shim: undefined,
    };
  }
  const names = new Set(declarations.map(({ name }) => name));
  let name = 'json_response';
  while (names.has(name)) name += '_';
  const description = told?.['description'];
  declarations.push({
    name,
    description: typeof description === 'string' ? description : 'Answer the user by calling this function.',
    parametersJsonSchema: { ...schema, type: 'object' },
  });
  encoding.report(
    'changed',
    'response_format',
    'this model has no JSON output together with functions: a function replaces it',
  );
  return { format: {}, shim: name };
}
