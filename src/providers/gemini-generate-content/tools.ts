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

/** The tools, the tool choice, and the output format, which may itself need a tool. */
export interface ToolPlan {
  tools: WireTool[];
  toolConfig: WireToolConfig | undefined;
  format: Pick<WireGenerationConfig, 'responseMimeType' | 'responseJsonSchema'>;
  /** The name of the function whose arguments are the answer. */
  shim: string | undefined;
}

/** Plans tools and JSON output. */
export function planTools(request: ChatRequest, encoding: Encoding): ToolPlan {
  const allowed = allowedTools(request.tool_choice);
  const declarations: WireDeclaration[] = [];
  const natives: WireTool[] = [];
  let isStrict = true;
  for (const [i, tool] of (request.tools ?? []).entries()) {
    const field = `tools[${i}]`;
    if (isNative(tool)) {
      if (tool.wire === WIRE) natives.push(tool.block);
      else encoding.addReport('dropped', field, `a tool of ${tool.wire} cannot be expressed in this provider's API`);
    } else if (!isFunction(tool)) {
      encoding.addReport('dropped', field, `${tool.type} is not run by this upstream`);
    } else if (allowed === undefined || allowed.has(tool.function.name)) {
      declarations.push(declare(tool, encoding));
      isStrict &&= tool.function.strict === true;
    }
  }
  let choice = declarations.length > 0 ? encodeChoice(request, isStrict, encoding) : undefined;
  if (declarations.length > 0 && request.parallel_tool_calls === false) {
    encoding.addReport('dropped', 'parallel_tool_calls', 'this provider decides by itself how many calls it makes');
  }
  const output = planOutput(request, declarations, encoding);
  if (output.shim !== undefined && choice?.mode !== 'ANY') {
    // With other callable functions, the answer is one call among them.
    const isOnlyFunction = declarations.length === 1 || choice?.mode === 'NONE';
    choice = isOnlyFunction ? { mode: 'ANY', allowedFunctionNames: [output.shim] } : { mode: 'ANY' };
  }
  const tools = declarations.length > 0 ? [{ functionDeclarations: declarations }, ...natives] : natives;
  return { tools, toolConfig: configOf(choice, natives, encoding), ...output };
}

function configOf(
  choice: WireCallingConfig | undefined,
  natives: readonly WireTool[],
  { facts, is_cloud: isCloud }: Encoding,
): WireToolConfig | undefined {
  // Invocations of Google's own tools must be included in order to be sent back (translation table 2.10); Vertex AI does not need this.
  const includesInvocations = natives.length > 0 && !isCloud && facts.generation !== undefined && facts.generation >= 3;
  if (choice === undefined && !includesInvocations) return undefined;
  return {
    ...(choice === undefined ? {} : { functionCallingConfig: choice }),
    ...(includesInvocations ? { includeServerSideToolInvocations: true } : {}),
  };
}

function declare({ function: { name, description, parameters }, ext }: FunctionTool, { names }: Encoding) {
  // The schema unchanged: this field accepts the full language, including references.
  const declaration: WireDeclaration = { name: names.toWire(name) };
  if (description != null) declaration.description = description;
  if (parameters != null && Object.keys(parameters).length > 0) declaration.parametersJsonSchema = parameters;
  return { ...restOf(ext), ...declaration };
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
      encoding.addReport('dropped', 'tool_choice', 'this provider does not support this choice');
      return automatic;
  }
}

function planOutput(
  { response_format: requested }: ChatRequest,
  declarations: WireDeclaration[],
  encoding: Encoding,
): Pick<ToolPlan, 'format' | 'shim'> {
  if (requested == null || requested.type === 'text') return { format: {}, shim: undefined };
  if (requested.type !== 'json_schema' && requested.type !== 'json_object') {
    encoding.addReport('dropped', 'response_format', `this provider does not support the format ${requested.type}`);
    return { format: {}, shim: undefined };
  }
  const jsonSchema = asObject((requested as JsonObject)['json_schema']);
  const schema = requested.type === 'json_schema' ? asObject(jsonSchema?.['schema']) : undefined;
  if (declarations.length === 0 || encoding.facts.is_json_with_tools) {
    return {
      format: { responseMimeType: 'application/json', ...(schema === undefined ? {} : { responseJsonSchema: schema }) },
      shim: undefined,
    };
  }
  const names = new Set(declarations.map(({ name }) => name));
  let name = 'json_response';
  while (names.has(name)) name += '_';
  const description = jsonSchema?.['description'];
  declarations.push({
    name,
    description: typeof description === 'string' ? description : 'Answer the user by calling this function.',
    parametersJsonSchema: { ...schema, type: 'object' },
  });
  encoding.addReport(
    'changed',
    'response_format',
    'this model has no JSON output together with functions: a function replaces it',
  );
  return { format: {}, shim: name };
}
