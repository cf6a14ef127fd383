import { CallCancelled } from '../../inference/attempt/upstream-call.ts';
import type { Call } from '../../inference/call.ts';
import { limits } from '../../limits.ts';
import type { ChatCompletion, ChatRequest, InnerPart, Message } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asksFor } from '../plugin-options.ts';
import { createWorkerPool, WorkFailed } from '../worker-pool.ts';

/** The schema of an answer that is repaired. */
const HEALING_SCHEMA_CHARS_MAX = 256 * 1024;
const HEALING_MS_MAX = 2_000;
const HEALING_HEAP_MB_MAX = 128;

/** Repairs answers that should be JSON but are not. */
export interface Healing {
  /** Whether answers to this call are checked. */
  isFor(call: Call): boolean;
  /** Returns the answer with repaired JSON, or the same answer. Adds a stage to the call if it acted. */
  heal(call: Call, completion: ChatCompletion): Promise<ChatCompletion>;
  /** Adds the stage for a stream, which is not repaired. */
  leaveStream(call: Call): void;
  stop(): Promise<void>;
}

type Mode = 'json_object' | 'json_schema';

/** `whole`: the answer was valid. `failed`: it could not be repaired. `unchecked`: its schema cannot be checked. */
type Outcome = { outcome: 'whole' | 'failed' | 'unchecked' } | { outcome: 'healed'; text: string };

function modeOf({ response_format: format }: ChatRequest): Mode | undefined {
  return format?.type === 'json_object' || format?.type === 'json_schema' ? (format.type as Mode) : undefined;
}

function schemaOf({ response_format: format }: ChatRequest): JsonObject | undefined {
  if (format?.type !== 'json_schema') return undefined;
  const { json_schema } = format as { json_schema?: { schema?: JsonObject } };
  return json_schema?.schema;
}

/** JSON text. Null if the value is nested too deeply. */
function jsonOf(value: JsonObject | undefined): string | null | undefined {
  try {
    return value && JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function textOf({ content }: Message): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** Replaces the text of an answer. If it has several texts, the first gets all of it, so that blocks keep their positions. */
function withText(message: Message, text: string): Message {
  const { content } = message;
  if (!Array.isArray(content)) return { ...message, content: text };
  const first = content.findIndex((part) => part.type === 'text');
  const put = (part: InnerPart, at: number): InnerPart =>
    part.type === 'text' ? { ...part, text: at === first ? text : '' } : part;
  return { ...message, content: content.map(put) };
}

/** Removes the offsets of citations, which are unknown after a repair. */
function withoutPlaces(message: Message): Message {
  if (!message.annotations?.length) return message;
  const annotations = message.annotations.map((one) =>
    'url_citation' in one && one.type === 'url_citation'
      ? { ...one, url_citation: { ...(one.url_citation as object), start_index: 0, end_index: 0 } }
      : one,
  ) as NonNullable<Message['annotations']>;
  return { ...message, annotations };
}

/** Creates the repair in a separate process, which starts with the first invalid answer. */
export function createHealing(bounds: { ms_max?: number } = {}): Healing {
  const pool = createWorkerPool({
    script: new URL('./healing-worker.js', import.meta.url),
    processes_max: 1,
    waiting_max: limits.healing_waiting_max,
    waiting_per_owner_max: limits.healing_waiting_per_owner_max,
    wait_ms_max: HEALING_MS_MAX,
    ms_max: bounds.ms_max ?? HEALING_MS_MAX,
    heap_mb_max: HEALING_HEAP_MB_MAX,
  });

  async function tryToHeal(call: Call, text: string): Promise<Outcome> {
    const { request, principal } = call;
    const schema = jsonOf(schemaOf(request));
    const isLarge =
      text.length > limits.healed_chars_max || schema === null || (schema?.length ?? 0) > HEALING_SCHEMA_CHARS_MAX;
    if (isLarge) return { outcome: 'unchecked' };
    const controller = new AbortController();
    const unsubscribe = call.cancellation.onCancel(() => controller.abort(new CallCancelled({ may_be_billed: false })));
    try {
      const owner = principal.key_hash ?? principal.kind;
      return (await pool.run({ text, schema }, { owner, signal: controller.signal })) as Outcome;
    } catch (error) {
      // The answer is paid for, so it is returned unrepaired.
      if (error instanceof WorkFailed || error instanceof CallCancelled) return { outcome: 'unchecked' };
      throw error;
    } finally {
      unsubscribe();
    }
  }

  return {
    isFor: ({ request }) =>
      request.plugins != null && modeOf(request) !== undefined && asksFor(request, 'response-healing') === true,

    async heal(call, completion) {
      const [choice] = completion.choices;
      const { message, finish_reason } = choice;
      const text = textOf(message);
      if (finish_reason !== 'stop' || message.tool_calls?.length || text === '') return completion;
      const mode = modeOf(call.request)!;
      if (mode === 'json_object' && isJsonObject(text)) return completion;
      const result = await tryToHeal(call, text);
      if (result.outcome === 'whole') return completion;
      const improved = result.outcome === 'healed';
      const healed = improved ? result.text : text;
      call.stages.push({
        type: 'response_healing',
        name: 'response-healing',
        data: {
          mode,
          improved,
          original_length: text.length,
          healed_length: healed.length,
          ...(improved ? {} : { reason: REASONS[result.outcome] }),
        },
      });
      if (!improved) return completion;
      const mended = withoutPlaces(withText(message, healed)) as typeof message;
      return { ...completion, choices: [{ ...choice, message: mended }] };
    },

    leaveStream(call) {
      const data = { mode: modeOf(call.request)!, improved: false, reason: 'streams are not repaired' };
      call.stages.push({ type: 'response_healing', name: 'response-healing', data });
    },

    stop: () => pool.stop(),
  };
}

const REASONS = {
  failed: 'it could not be turned into the requested format',
  unchecked: 'the answer or its schema is too large, or cannot be checked',
} as const;

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
