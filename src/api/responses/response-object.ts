import { GatewayError } from '../../errors.ts';
import { serialize } from '../../inference/attempt/prepare-attempt.ts';
import type { Served } from '../../inference/events.ts';
import type { AnswerUsage } from '../../inference/money/answer-usage.ts';
import { limits } from '../../limits.ts';
import { restOf } from '../../providers/openai-responses/wire.ts';
import { asObject } from '../../providers/shared/json-shape.ts';
import { append } from '../../schemas/append.ts';
import type { ChoiceError, Ext, FinishReason } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { isLongJson } from '../../schemas/json-pieces.ts';
import { metadataMembers } from '../../schemas/routing-metadata.ts';
import { errorTypeOf } from '../shared/error-type.ts';
import type { JsonPart } from '../shared/json-parts.ts';
import { errorCodeOf } from './errors.ts';
import type { ItemStatus } from './item.ts';
import type { OutputItem } from './items.ts';

/** How an answer ended, in terms of this API. */
export interface Ending {
  status: 'completed' | 'incomplete' | 'failed';
  incomplete_details: { reason: 'max_output_tokens' | 'content_filter' } | null;
  error: { code: string; message: string } | null;
  /** The kind of failure, finer than `error.code`. */
  error_type?: string;
}

/** The facts about a finished response besides its request. */
export interface FinishedFacts {
  /** Undefined if no endpoint answered. */
  served: Served | undefined;
  output: readonly OutputItem[];
  ending: Ending;
  usage: AnswerUsage;
  service_tier: string | null;
  /** The remainder of the upstream's response, if it used this wire. */
  remainder: Ext | undefined;
  metadata: Record<string, unknown> | undefined;
  /** Unix seconds. */
  completed_at: number;
}

/** The Response object of one answer (specification, "Responses API items"). The fields that repeat the request are encoded once. */
export interface ResponseObject {
  /**
   * Memory in bytes for repeating the request, which each event with the whole object does. Throws a `GatewayError` 400 for a request that
   * is nested too deeply.
   */
  repeatedBytes(): number;
  /** The object at the beginning, without output. */
  started(served: Served | undefined): string;
  /** The finished object as parts of JSON. */
  finished(facts: FinishedFacts): JsonPart[];
}

/** The status and the reason for an answer's finish reason. `failure` is an error of the gateway. */
export function endingOf(
  finishReason: FinishReason | null,
  error: ChoiceError | undefined,
  failure: GatewayError | undefined,
): Ending {
  const none = { incomplete_details: null, error: null };
  if (failure !== undefined) {
    const { status, message, metadata } = failure;
    return {
      status: 'failed',
      incomplete_details: null,
      error: { code: errorCodeOf(status, metadata), message },
      error_type: errorTypeOf(status, metadata),
    };
  }
  switch (finishReason) {
    case 'length':
      return { ...none, status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
    case 'content_filter':
      return { ...none, status: 'incomplete', incomplete_details: { reason: 'content_filter' } };
    case 'error': {
      const { code = 502, message = "The model's answer failed", metadata } = error ?? {};
      return {
        status: 'failed',
        incomplete_details: null,
        error: { code: errorCodeOf(code, metadata), message },
        error_type: errorTypeOf(code, metadata),
      };
    }
    default:
      return { ...none, status: 'completed' };
  }
}

/** The status of an item that was open at the end of the answer. */
export function itemStatusOf({ status }: Ending): ItemStatus {
  return status === 'completed' ? 'completed' : 'incomplete';
}

function publicUsage(usage: AnswerUsage): JsonObject {
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details } = usage;
  const { cost, is_byok, cost_details, server_tool_use } = usage;
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: {
      cached_tokens: prompt_tokens_details.cached_tokens,
      cache_write_tokens: prompt_tokens_details.cache_write_tokens,
    },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: completion_tokens_details.reasoning_tokens },
    total_tokens,
    ...(cost === undefined ? {} : { cost }),
    is_byok,
    ...(cost_details === undefined
      ? {}
      : {
          cost_details: {
            upstream_inference_cost: cost_details.upstream_inference_cost,
            upstream_inference_input_cost: cost_details.upstream_inference_prompt_cost,
            upstream_inference_output_cost: cost_details.upstream_inference_completions_cost,
          },
        }),
    ...(server_tool_use === undefined ? {} : { server_tool_use: { ...server_tool_use } }),
  };
}

/** Values of fields that the request omits: OpenAI's defaults. */
const DEFAULTS: JsonObject = {
  background: false,
  frequency_penalty: 0,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
};

/** Fields whose value is taken from an upstream of this wire if the request omits them. */
const OPEN = ['reasoning', 'temperature', 'text', 'top_p', 'truncation'];

/** Fields in which the gateway replaces the upstream's values. */
const OURS: ReadonlySet<string> = new Set([
  ...Object.keys(DEFAULTS),
  'model',
  'service_tier',
  'usage',
  'gateway_metadata',
  'openrouter_metadata',
]);

/** The repeated fields of the request, in the client's form; omitted ones from the upstream. */
function echoOf(body: JsonObject, upstream: JsonObject): JsonObject {
  const echo: JsonObject = { ...DEFAULTS };
  for (const name of OPEN) {
    const value = upstream[name];
    if (value != null && typeof value === typeof DEFAULTS[name]) echo[name] = value;
  }
  for (const name of Object.keys(DEFAULTS)) if (body[name] != null) echo[name] = body[name];
  for (const name of ['text', 'reasoning']) {
    const known = [DEFAULTS[name], upstream[name], body[name]].map((value) => withoutNulls(asObject(value)));
    echo[name] = Object.assign({}, asObject(DEFAULTS[name]), ...known);
  }
  return echo;
}

function withoutNulls(value: JsonObject | undefined): JsonObject {
  return Object.fromEntries(Object.entries(value ?? {}).filter(([, member]) => member !== null));
}

/** Throws a `GatewayError` 400 for a request whose repeated fields are too large. */
export function checkRepeated(body: JsonObject): void {
  if (!isLongJson(echoOf(body, {}), limits.repeated_chars_max)) return;
  throw new GatewayError(
    400,
    `The fields that a response repeats of its request (instructions, tools, text and the like) must not have more than ${limits.repeated_chars_max} characters together; send long texts as input`,
  );
}

/** Makes the Response object of one answer. */
export function createResponseObject(
  { id, created_at, model }: { id: string; created_at: number; model: string },
  body: JsonObject,
): ResponseObject {
  let echo: string | undefined;
  const echoed = () => {
    echo ??= serialize(echoOf(body, {})).slice(1, -1);
    return echo;
  };
  const head = `"id":${JSON.stringify(id)},"object":"response","created_at":${created_at}`;
  const tier = JSON.stringify(body['service_tier'] ?? 'auto');
  return {
    repeatedBytes() {
      const isWide = /[^\0-\xff]/.test(echoed());
      return echoed().length * (isWide ? 2 : 1);
    },
    started(served) {
      const shown = JSON.stringify(served?.model ?? model);
      return `{${head},"status":"in_progress","completed_at":null,"error":null,"incomplete_details":null,"model":${shown},"output":[],${echoed()},"service_tier":${tier},"usage":null}`;
    },
    finished,
  };

  function finished(facts: FinishedFacts): JsonPart[] {
    const { served, output, ending, usage, service_tier, remainder, metadata, completed_at } = facts;
    const { status, error, incomplete_details, error_type } = ending;
    const theirs = restOf(remainder);
    const rest: JsonObject = {};
    for (const [name, value] of Object.entries(theirs)) if (!OURS.has(name)) rest[name] = value;
    const repeated = OPEN.some((name) => theirs[name] !== undefined) ? members(echoOf(body, theirs)) : echoed();
    const shown = {
      status,
      completed_at: status === 'completed' ? completed_at : null,
      error,
      ...(error_type === undefined ? {} : { error_type }),
      incomplete_details,
      model: served?.model ?? model,
      ...rest,
    };
    const last = {
      service_tier,
      usage: publicUsage(usage),
      ...metadataMembers(metadata),
    };
    const parts: JsonPart[] = [`{${head},${members(shown)},"output":[`];
    for (const item of output) {
      if (parts.length > 1) parts.push(',');
      append(parts, item);
    }
    parts.push(`],${repeated},${members(last)}}`);
    return parts;
  }
}

function members(value: object): string {
  return JSON.stringify(value).slice(1, -1);
}
