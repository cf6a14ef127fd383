import type { Endpoint } from '../catalog/model.ts';
import { limits } from '../limits.ts';
import { contentsOf } from '../schemas/contents.ts';
import { type EndpointParameter, endpointParameters } from '../schemas/endpoint.ts';
import type { ChatRequest } from '../schemas/inner.ts';

/** What a request needs of whoever serves it, found once. */
export interface Needs {
  /** Kinds of content that it holds, beyond text. */
  input: readonly string[];
  /** Kinds of output that it asks for. */
  output: readonly string[];
  /** Tokens that its prompt has at least, whatever the tokenizer. */
  prompt_tokens_min: number;
  /** Tokens that it probably has. */
  prompt_tokens: number;
  /** The output bound that it names; 0: none. */
  output_tokens: number;
  /** Whether it offers tools. */
  tools: boolean;
  /** Whether its prompt may be shortened to fit (plugin context-compression); undefined: it does not say. */
  compression: boolean | undefined;
  /** Parameters without which its answer would be another: a format, a verbosity. */
  forms: readonly EndpointParameter[];
}

/** What this request needs. */
export function needsOf(request: ChatRequest): Needs {
  const { chars, kinds, has_files: hasFiles } = contentsOf(request);
  return {
    input: hasFiles && asksForNativeFiles(request) ? [...kinds, 'file'] : kinds,
    output: request.modalities ?? [],
    prompt_tokens_min: Math.floor(chars / limits.chars_per_token_max),
    prompt_tokens: Math.floor(chars / limits.chars_per_token),
    output_tokens: request.max_completion_tokens ?? request.max_tokens ?? 0,
    tools: (request.tools?.length ?? 0) > 0,
    compression: compressionOf(request),
    forms: formsOf(request),
  };
}

/** Files that only endpoints may read which take them (plugin file-parser, engine `native`). */
function asksForNativeFiles({ plugins }: ChatRequest): boolean {
  const plugin = plugins?.findLast(({ id }) => id === 'file-parser');
  const pdf = plugin?.['pdf'];
  const engine = typeof pdf === 'object' && pdf !== null && 'engine' in pdf ? pdf['engine'] : undefined;
  return engine === 'native' && plugin?.enabled !== false;
}

/** What a request says of shortening its prompt: by the plugin, or by the older list of transforms. */
export function compressionOf({ plugins, transforms }: ChatRequest): boolean | undefined {
  const plugin = plugins?.findLast(({ id }) => id === 'context-compression');
  if (plugin !== undefined) return plugin.enabled !== false;
  return Array.isArray(transforms) ? transforms.includes('middle-out') : undefined;
}

/**
 * Whether a prompt that is too long for an endpoint is shortened for it: where the request says so, or says nothing and the
 * endpoint reads little (public service's documentation, "Message transforms").
 */
export function isShortenedFor({ context_length: contextLength }: Endpoint, compression: boolean | undefined): boolean {
  return compression ?? (contextLength ?? Number.POSITIVE_INFINITY) <= limits.compressed_context_tokens_max;
}

const NO_FORMS: readonly EndpointParameter[] = [];

function formsOf({ response_format: responseFormat, verbosity }: ChatRequest): readonly EndpointParameter[] {
  const format = responseFormat?.type;
  if ((format == null || format === 'text') && verbosity == null) return NO_FORMS;
  const forms: EndpointParameter[] = [];
  if (format === 'json_schema') forms.push('structured_outputs');
  else if (format != null && format !== 'text') forms.push('response_format');
  if (verbosity != null) forms.push('verbosity');
  return forms;
}

/** Whether an endpoint takes a kind of content; Mistral's read documents, whatever the model. */
export function takesInput({ input_modalities: inputModalities, quirks }: Endpoint, kind: string): boolean {
  return inputModalities.includes(kind) || (kind === 'file' && quirks.document_url === true);
}

/** Whether an endpoint takes a parameter; what takes schemas takes the plain JSON format as well. */
export function supports({ supported_parameters: known }: Endpoint, name: EndpointParameter): boolean {
  if (known === undefined || known.includes(name)) return true;
  return name === 'response_format' && known.includes('structured_outputs');
}

/** The longest prompt that an endpoint reads, in tokens. */
export function promptTokensMax({
  context_length: contextLength,
  max_prompt_tokens: maxPromptTokens,
}: Endpoint): number {
  return Math.min(contextLength ?? Number.POSITIVE_INFINITY, maxPromptTokens ?? Number.POSITIVE_INFINITY);
}

/** Whether prompt and output bound probably pass what an endpoint holds. */
export function isTight(
  endpoint: Endpoint,
  { prompt_tokens: promptTokens, output_tokens: outputTokens }: Needs,
): boolean {
  if (promptTokens > promptTokensMax(endpoint)) return true;
  const output = Math.min(outputTokens, endpoint.max_completion_tokens ?? outputTokens);
  return promptTokens + output > (endpoint.context_length ?? Number.POSITIVE_INFINITY);
}

type Field = Exclude<EndpointParameter, 'max_tokens' | 'max_completion_tokens' | 'structured_outputs'>;

/** Request fields that an endpoint may not support, each with its place. A bound is lowered rather than taken away; the last is no field. */
const FIELDS: ReadonlyMap<string, number> = new Map(
  endpointParameters
    .filter((name) => !['max_tokens', 'max_completion_tokens', 'structured_outputs'].includes(name))
    .map((name, place) => [name, place]),
);

/** The parameters of a request that this endpoint does not list as supported, in the order of the list that endpoints choose from. */
export function unsupportedParameters(request: ChatRequest, endpoint: Endpoint): string[] {
  const supported = endpoint.supported_parameters;
  const found: string[] = [];
  if (supported === undefined) return found;
  // A request has fewer fields than there are.
  for (const field of Object.keys(request)) {
    if (!FIELDS.has(field)) continue;
    const name = field as Field;
    const value = request[name];
    if (value === undefined || value === null || supported.includes(name)) continue;
    // One capability under several names.
    if (name === 'tool_choice' && supported.includes('tools')) continue;
    if (name === 'parallel_tool_calls' && supported.includes('tools')) continue;
    if (name === 'response_format' && supported.includes('structured_outputs')) continue;
    if (/reasoning/.test(name) && supported.includes('reasoning')) continue;
    found.push(name);
  }
  return found.sort((a, b) => FIELDS.get(a)! - FIELDS.get(b)!);
}
