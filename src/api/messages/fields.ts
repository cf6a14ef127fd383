import type { StreamEnd } from '../../inference/events.ts';
import { isOwn } from '../../providers/anthropic-messages/wire.ts';
import type { FinishReason, ResponseExt, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { outputTokens } from '../../schemas/usage.ts';

/** How an answer ended, in words of the inner language. */
export interface Ending {
  finish_reason: FinishReason | null;
  native_finish_reason: string | null;
  /** The model refused in words. */
  refused: boolean;
  response: Partial<ResponseExt>;
}

/** Of what this very wire told beside the blocks; empty where another wire answered. `model` and ids are ours. */
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
  const stop_sequence = response.stopSequence ?? null;
  const finish = finish_reason ?? 'stop';
  if (isOwn(response) && native_finish_reason !== null) {
    // Calls decide between the two, whatever the upstream says: clients run tools by it.
    const is_untrue = (native_finish_reason === 'tool_use') !== (finish === 'tool_calls');
    const is_plain = native_finish_reason === 'tool_use' || native_finish_reason === 'end_turn';
    if (!is_untrue || !is_plain) return { stop_reason: native_finish_reason, stop_sequence };
  }
  if (refused && finish === 'stop') return { stop_reason: 'refusal', stop_sequence };
  if (stop_sequence !== null && finish === 'stop') return { stop_reason: 'stop_sequence', stop_sequence };
  return { stop_reason: STOP_REASONS[finish], stop_sequence };
}

function sum(...counts: (number | undefined)[]): number | undefined {
  const told = counts.filter((count) => count !== undefined);
  return told.length === 0 ? undefined : told.reduce((total, count) => total + count, 0);
}

/** The token counts of the wire's `usage`, among what this very wire told `beside` them. What was not told is null, as there. */
function countsOf(classes: TokenClasses, beside: JsonObject): JsonObject {
  const { in_cache_write_5m, in_cache_write_1h, out_reasoning, counts } = classes;
  const written = sum(in_cache_write_5m, in_cache_write_1h);
  const among = (name: string, counted: JsonObject | null): JsonObject | null => {
    const told = beside[name] as JsonObject | undefined;
    return told === undefined ? counted : { ...counted, ...told };
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

/** `default` is what this wire calls standard. */
function tierOf(service_tier: string | null | undefined): string | null {
  return service_tier === 'default' ? 'standard' : (service_tier ?? null);
}

/** The `usage` of a message as far as it is known; a beginning knows no costs. */
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
