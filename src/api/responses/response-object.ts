import { GatewayError } from '../../errors.ts';
import { serialize } from '../../inference/attempt/attempt.ts';
import type { Served } from '../../inference/events.ts';
import type { AnswerUsage } from '../../inference/money/settlement.ts';
import { limits } from '../../limits.ts';
import { restOf } from '../../providers/openai-responses/wire.ts';
import { asObject } from '../../providers/shared/json-shape.ts';
import type { ChoiceError, Ext, FinishReason } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { isLongJson } from '../../schemas/json-pieces.ts';
import { metadataMembers } from '../../schemas/routing-metadata.ts';
import { errorTypeOf } from '../shared/error-type.ts';
import type { JsonPart } from '../shared/json-parts.ts';
import { errorCodeOf } from './errors.ts';
import type { ItemStatus } from './item.ts';
import type { OutputItem } from './items.ts';

/** How an answer ended, as this API tells it. */
export interface Ending {
  status: 'completed' | 'incomplete' | 'failed';
  incomplete_details: { reason: 'max_output_tokens' | 'content_filter' } | null;
  error: { code: string; message: string } | null;
  /** Which kind of failure it was, more finely than `error.code`. */
  error_type?: string;
}

/** What a finished response tells beside its request. */
export interface Told {
  /** Undefined where nobody answered. */
  served: Served | undefined;
  output: readonly OutputItem[];
  ending: Ending;
  usage: AnswerUsage;
  service_tier: string | null;
  /** What the upstream's own response told, where it is of this very wire. */
  remainder: Ext | undefined;
  metadata: Record<string, unknown> | undefined;
  /** Unix seconds. */
  completed_at: number;
}

/** The Response object of one answer (specification, "Responses API items"): what it repeats of its request is written once. */
export interface ResponseObject {
  /**
   * What it repeats of its request, in bytes of memory: each event that shows the whole object holds it once more. Throws
   * `GatewayError` 400 for a request that is nested too deeply.
   */
  repeatedBytes(): number;
  /** As it begins, without any output. */
  begun(served: Served | undefined): string;
  finished(told: Told): string;
  /** The same as the parts of its JSON. */
  finishedParts(told: Told): JsonPart[];
}

/** How the model's finish reads here. An error of the gateway's own is `failure`. */
export function endingOf(
  finish_reason: FinishReason | null,
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
  switch (finish_reason) {
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

/** The status of an item that was open when the answer ended. */
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

/** What a response says of its request where the request says nothing: OpenAI's defaults. */
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

/** Values of an upstream of this very wire that stand where the request left them open. */
const OPEN = ['reasoning', 'temperature', 'text', 'top_p', 'truncation'];

/** What an upstream says of itself, and the gateway tells of its own. */
const OURS: ReadonlySet<string> = new Set([
  ...Object.keys(DEFAULTS),
  'model',
  'service_tier',
  'usage',
  'gateway_metadata',
  'openrouter_metadata',
]);

/** The request as its response repeats it, in the client's own words; where those are silent, in the upstream's. */
function echoOf(body: JsonObject, told: JsonObject): JsonObject {
  const echo: JsonObject = { ...DEFAULTS };
  for (const name of OPEN) {
    const value = told[name];
    if (value != null && typeof value === typeof DEFAULTS[name]) echo[name] = value;
  }
  for (const name of Object.keys(DEFAULTS)) if (body[name] != null) echo[name] = body[name];
  for (const name of ['text', 'reasoning']) {
    const known = [DEFAULTS[name], told[name], body[name]].map((one) => withoutNulls(asObject(one)));
    echo[name] = Object.assign({}, asObject(DEFAULTS[name]), ...known);
  }
  return echo;
}

function withoutNulls(value: JsonObject | undefined): JsonObject {
  return Object.fromEntries(Object.entries(value ?? {}).filter(([, member]) => member !== null));
}

/** Refuses a request of which its response would repeat too much. Throws `GatewayError` 400. */
export function checkRepeated(body: JsonObject): void {
  if (!isLongJson(echoOf(body, {}), limits.repeated_chars_max)) return;
  throw new GatewayError(
    400,
    `What a response repeats of its request (instructions, tools, text and the like) must not have more than ${limits.repeated_chars_max} characters together; send long texts as input`,
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
      const is_wide = /[^\0-\xff]/.test(echoed());
      return echoed().length * (is_wide ? 2 : 1);
    },
    begun(served) {
      const shown = JSON.stringify(served?.model ?? model);
      return `{${head},"status":"in_progress","completed_at":null,"error":null,"incomplete_details":null,"model":${shown},"output":[],${echoed()},"service_tier":${tier},"usage":null}`;
    },
    finished: (told) => finished(told, ({ json }) => json).join(''),
    finishedParts: (told) => finished(told, ({ value }) => ({ value })),
  };

  /** Its JSON, of which `written` makes the items of the output. */
  function finished<T>(told: Told, written: (item: OutputItem) => T): (string | T)[] {
    const { served, output, ending, usage, service_tier, remainder, metadata, completed_at } = told;
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
    const parts: (string | T)[] = [`{${head},${members(shown)},"output":[`];
    for (const item of output) {
      if (parts.length > 1) parts.push(',');
      parts.push(written(item));
    }
    parts.push(`],${repeated},${members(last)}}`);
    return parts;
  }
}

function members(value: object): string {
  return JSON.stringify(value).slice(1, -1);
}
