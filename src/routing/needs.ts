import type { Endpoint } from '../catalog/model.ts';
import { contentsOf } from '../schemas/contents.ts';
import { type EndpointParameter, endpointParameters } from '../schemas/endpoint.ts';
import type { ChatRequest } from '../schemas/inner.ts';

/**
 * The context up to which prompts are shortened for an endpoint by default (public service's documentation, "Message
 * transforms").
 */
const COMPRESSED_CONTEXT_TOKENS_MAX = 8_192;
/** The longest token of known vocabularies, which bounds the tokens of a prompt from below, and the usual length of a token. */
const CHARS_PER_TOKEN_MAX = 128;
const CHARS_PER_TOKEN = 4;

/** The requirements of a request, computed once. */
export interface Needs {
  /** The kinds of its content other than text. */
  input: readonly string[];
  /** The requested kinds of output. */
  output: readonly string[];
  /** The least number of prompt tokens, whatever the tokenizer. */
  prompt_tokens_min: number;
  /** The probable number of prompt tokens. */
  prompt_tokens: number;
  /** The requested output bound; 0 if none. */
  output_tokens: number;
  /** Whether it declares tools. */
  tools: boolean;
  /** Whether its prompt may be shortened to fit (plugin context-compression); undefined if not set. */
  compression: boolean | undefined;
  /** Parameters that determine the answer's form: a format, a verbosity. */
  forms: readonly EndpointParameter[];
}

/** The requirements of a request. */
export function needsOf(request: ChatRequest): Needs {
  const { chars, kinds, has_files: hasFiles } = contentsOf(request);
  return {
    input: hasFiles && requiresNativeFiles(request) ? [...kinds, 'file'] : kinds,
    output: request.modalities ?? [],
    prompt_tokens_min: Math.floor(chars / CHARS_PER_TOKEN_MAX),
    prompt_tokens: Math.floor(chars / CHARS_PER_TOKEN),
    output_tokens: request.max_completion_tokens ?? request.max_tokens ?? 0,
    tools: (request.tools?.length ?? 0) > 0,
    compression: compressionOf(request),
    forms: request.response_format == null && request.verbosity == null ? NO_FORMS : formsOf(request),
  };
}

/** Whether files may be read only by endpoints that accept them (plugin file-parser, engine `native`). */
function requiresNativeFiles({ plugins }: ChatRequest): boolean {
  const plugin = plugins?.findLast(({ id }) => id === 'file-parser');
  const pdf = plugin?.['pdf'];
  const engine = typeof pdf === 'object' && pdf !== null && 'engine' in pdf ? pdf['engine'] : undefined;
  return engine === 'native' && plugin?.enabled !== false;
}

/** Whether a request allows shortening its prompt, by the plugin or by the older list of transforms; undefined if not set. */
export function compressionOf({ plugins, transforms }: ChatRequest): boolean | undefined {
  const plugin = plugins?.findLast(({ id }) => id === 'context-compression');
  if (plugin !== undefined) return plugin.enabled !== false;
  return Array.isArray(transforms) ? transforms.includes('middle-out') : undefined;
}

/**
 * Whether a prompt that is too long for an endpoint is shortened for it: if the request says so, or if it is not set and the endpoint has
 * a small context (public service's documentation, "Message transforms").
 */
export function isShortenedFor({ context_length: contextLength }: Endpoint, compression: boolean | undefined): boolean {
  return compression ?? (contextLength ?? Number.POSITIVE_INFINITY) <= COMPRESSED_CONTEXT_TOKENS_MAX;
}

const NO_FORMS: readonly EndpointParameter[] = [];

function formsOf({ response_format: responseFormat, verbosity }: ChatRequest): readonly EndpointParameter[] {
  const format = responseFormat?.type;
  const forms: EndpointParameter[] = [];
  if (format === 'json_schema') forms.push('structured_outputs');
  else if (format != null && format !== 'text') forms.push('response_format');
  if (verbosity != null) forms.push('verbosity');
  return forms;
}

/** Whether an endpoint accepts a kind of content; Mistral's endpoints read documents, whatever the model. */
export function acceptsInput({ input_modalities: inputModalities, quirks }: Endpoint, kind: string): boolean {
  return inputModalities.includes(kind) || (kind === 'file' && quirks.document_url === true);
}

/** Whether an endpoint supports a parameter; endpoints with schemas also support the plain JSON format. */
export function supports({ supported_parameters: known }: Endpoint, name: EndpointParameter): boolean {
  if (known === undefined || known.includes(name)) return true;
  return name === 'response_format' && known.includes('structured_outputs');
}

/** The longest prompt of an endpoint, in tokens. */
export function promptTokensMax({
  context_length: contextLength,
  max_prompt_tokens: maxPromptTokens,
}: Endpoint): number {
  return Math.min(contextLength ?? Number.POSITIVE_INFINITY, maxPromptTokens ?? Number.POSITIVE_INFINITY);
}

/** Whether prompt and output bound probably exceed an endpoint's context. */
export function isTight(
  endpoint: Endpoint,
  { prompt_tokens: promptTokens, output_tokens: outputTokens }: Needs,
): boolean {
  if (promptTokens > promptTokensMax(endpoint)) return true;
  const output = Math.min(outputTokens, endpoint.max_completion_tokens ?? outputTokens);
  return promptTokens + output > (endpoint.context_length ?? Number.POSITIVE_INFINITY);
}

type Field = Exclude<EndpointParameter, 'max_tokens' | 'max_completion_tokens' | 'structured_outputs'>;

/** Request fields that an endpoint may not support, with their positions. Bounds are lowered rather than dropped; the last is not a field. */
const FIELDS: ReadonlyMap<string, number> = new Map(
  endpointParameters
    .filter((name) => !['max_tokens', 'max_completion_tokens', 'structured_outputs'].includes(name))
    .map((name, place) => [name, place]),
);

const NO_FIELDS: readonly string[] = [];

/** The parameters of a request that this endpoint does not list as supported, in the order of the parameter list. */
export function unsupportedParameters(request: ChatRequest, endpoint: Endpoint): readonly string[] {
  const supported = endpoint.supported_parameters;
  if (supported === undefined) return NO_FIELDS;
  const missing: string[] = [];
  // A request has fewer fields than the list.
  for (const field in request) {
    if (!FIELDS.has(field)) continue;
    const name = field as Field;
    const value = request[name];
    if (value === undefined || value === null || supported.includes(name)) continue;
    // One capability under several names.
    if (name === 'tool_choice' && supported.includes('tools')) continue;
    if (name === 'parallel_tool_calls' && supported.includes('tools')) continue;
    if (name === 'response_format' && supported.includes('structured_outputs')) continue;
    if (/reasoning/.test(name) && supported.includes('reasoning')) continue;
    missing.push(name);
  }
  return missing.sort((a, b) => FIELDS.get(a)! - FIELDS.get(b)!);
}
