import type { StreamEnd } from '../../inference/events.ts';
import { isOwn } from '../../providers/anthropic-messages/wire.ts';
import type { FinishReason, ResponseExt, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { outputTokens } from '../../schemas/usage.ts';

/** How an answer ended, in terms of the inner language. */
export interface Ending {
  finish_reason: FinishReason | null;
  native_finish_reason: string | null;
  /** The model refused in words. */
  refused: boolean;
  response: Partial<ResponseExt>;
}

/** Fields of the upstream's answer besides its blocks, if it used this wire; else empty. `model` and ids are the gateway's. */
export function ownRest(response: Partial<ResponseExt>): JsonObject {
  if (!isOwn(response) || response.rest === undefined) return {};
  const { model: _, usage: __, ...others } = response.rest;
  return others;
}

const STOP_REASONS: Record<FinishReason, string> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
  error: 'end_turn',
};

/** Why the model stopped (https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons), and at which sequence. */
export function stopOf({ finish_reason, native_finish_reason, refused, response }: Ending): {
  stop_reason: string;
  stop_sequence: string | null;
} {
  const stopSequence = response.stopSequence ?? null;
  const finish = finish_reason ?? 'stop';
  if (isOwn(response) && native_finish_reason !== null) {
    // Calls decide, whatever the upstream states, since clients run tools by this value.
    const isUntrue = (native_finish_reason === 'tool_use') !== (finish === 'tool_calls');
    const isPlain = native_finish_reason === 'tool_use' || native_finish_reason === 'end_turn';
    if (!isUntrue || !isPlain) return { stop_reason: native_finish_reason, stop_sequence: stopSequence };
  }
  if (refused && finish === 'stop') return { stop_reason: 'refusal', stop_sequence: stopSequence };
  if (stopSequence !== null && finish === 'stop') return { stop_reason: 'stop_sequence', stop_sequence: stopSequence };
  return { stop_reason: STOP_REASONS[finish], stop_sequence: stopSequence };
}

function sum(...counts: (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined);
  return known.length === 0 ? undefined : known.reduce((total, count) => total + count, 0);
}

/** The token counts of `usage`, and the upstream's further counts (`beside`) if it used this wire. Unknown counts are null, as in this API. */
function countsOf(classes: TokenClasses, beside: JsonObject): JsonObject {
  const { in_cache_write_5m, in_cache_write_1h, out_reasoning, counts } = classes;
  const written = sum(in_cache_write_5m, in_cache_write_1h);
  const among = (name: string, counted: JsonObject | null): JsonObject | null => {
    const reported = beside[name] as JsonObject | undefined;
    return reported === undefined ? counted : { ...counted, ...reported };
  };
  const details = among(
    'output_tokens_details',
    out_reasoning === undefined ? null : { thinking_tokens: out_reasoning },
  );
  return {
    input_tokens: sum(classes.in_uncached, classes.in_audio, classes.in_image) ?? 0,
    cache_creation_input_tokens: written ?? null,
    cache_read_input_tokens: classes.in_cache_read ?? null,
    cache_creation: among(
      'cache_creation',
      written === undefined
        ? null
        : {
            ephemeral_5m_input_tokens: in_cache_write_5m ?? 0,
            ephemeral_1h_input_tokens: in_cache_write_1h ?? 0,
          },
    ),
    output_tokens: outputTokens(classes),
    ...(details === null ? {} : { output_tokens_details: details }),
    server_tool_use: among(
      'server_tool_use',
      counts === undefined
        ? null
        : {
            web_search_requests: counts.web_search ?? 0,
            web_fetch_requests: counts.web_fetch ?? 0,
            ...(counts.code === undefined ? {} : { code_execution_requests: counts.code }),
          },
    ),
  };
}

/** The name of a service tier in this API, which calls `default` `standard`. */
function tierOf(serviceTier: string | null | undefined): string | null {
  return serviceTier === 'default' ? 'standard' : (serviceTier ?? null);
}

/** The `usage` of a message, as far as it is known. At its beginning there are no costs. */
export function usageOf(
  classes: TokenClasses | null | undefined,
  { response, service_tier }: { response: Partial<ResponseExt>; service_tier: string | null | undefined },
  costs: Partial<Pick<StreamEnd['usage'], 'cost' | 'cost_details' | 'is_byok'>> = {},
): JsonObject {
  const { cost, cost_details, is_byok } = costs;
  const own = ((isOwn(response) ? response.rest?.['usage'] : undefined) ?? {}) as JsonObject;
  return {
    service_tier: tierOf(service_tier),
    ...own,
    ...countsOf(classes ?? {}, own),
    ...(cost === undefined
      ? {}
      : { cost, cost_details: cost_details as unknown as JsonValue, is_byok: is_byok ?? false }),
  };
}
