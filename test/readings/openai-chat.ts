/** Reads recorded answers of the chat wire with string handling of its own, without using the project's code. */
import type { Recording } from './recordings.ts';

export interface ChatReading {
  text: string;
  reasoning: string;
  refusal: string;
  calls: { id: string; name: string; arguments: string }[];
  /** The provider's own finish reason; empty if it sent none. */
  finish: string;
  prompt: number | undefined;
  completion: number | undefined;
  cached: number | undefined;
}

/**
 * The public names of the recorded finish reasons. An answer with calls ends in `tool_calls` whatever its own reason.
 */
export const FINISH: Record<string, string> = { stop: 'stop', tool_calls: 'tool_calls', length: 'length', '': 'stop' };

interface Fragment {
  content?: unknown;
  reasoning?: unknown;
  reasoning_content?: unknown;
  refusal?: unknown;
  tool_calls?: { index?: number; id?: string; function: { name?: string; arguments?: string } }[] | null;
}

/** The bytes of a recorded stream. */
export function chatBytes({ response: { text, events } }: Recording): Uint8Array {
  if (text !== undefined) return new TextEncoder().encode(text);
  const lines = events!.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
  return new TextEncoder().encode(lines.join(''));
}

/** The content of a recorded answer, streamed or whole. */
export function readChat(recording: Recording): ChatReading {
  const { json, text, events } = recording.response;
  const objects: unknown[] =
    json !== undefined
      ? [json]
      : events !== undefined
        ? events.map((event) => (typeof event === 'string' ? JSON.parse(event) : event))
        : text!
            .split('\n')
            .filter((line) => line.startsWith('data: {'))
            .map((line) => JSON.parse(line.slice(6)));
  const reading: ChatReading = {
    text: '',
    reasoning: '',
    refusal: '',
    calls: [],
    finish: '',
    prompt: undefined,
    completion: undefined,
    cached: undefined,
  };
  for (const object of objects as Record<string, never>[]) {
    const choice = (
      object['choices'] as unknown as { delta?: Fragment; message?: Fragment; finish_reason?: string }[]
    )?.[0];
    if (choice?.finish_reason) reading.finish = choice.finish_reason;
    readFragment(choice?.delta ?? choice?.message ?? {}, reading, json !== undefined);
    readCounts((object['usage'] ?? (object['x_groq'] as never)?.['usage']) as never, reading);
  }
  return reading;
}

function readFragment(fragment: Fragment, reading: ChatReading, isWhole: boolean): void {
  const { content } = fragment;
  if (typeof content === 'string') reading.text += content;
  else if (Array.isArray(content)) {
    for (const part of content) {
      if (part.type === 'text') reading.text += part.text;
      for (const thought of part.thinking ?? []) reading.reasoning += thought.text;
    }
  }
  reading.reasoning += fragment.reasoning_content || fragment.reasoning || '';
  reading.refusal += fragment.refusal ?? '';
  (fragment.tool_calls ?? []).forEach((call, position) => {
    const at = isWhole ? position : (call.index ?? position);
    reading.calls[at] ??= { id: '', name: '', arguments: '' };
    reading.calls[at].id ||= call.id ?? '';
    reading.calls[at].name ||= call.function.name ?? '';
    reading.calls[at].arguments += call.function.arguments ?? '';
  });
}

function readCounts(
  usage: Record<string, number & Record<string, number>> | null | undefined,
  reading: ChatReading,
): void {
  if (!usage) return;
  reading.prompt = usage['prompt_tokens'];
  // The rest of the total beyond both counts is reasoning that is counted separately.
  reading.completion = usage['total_tokens']! - usage['prompt_tokens']!;
  reading.cached =
    usage['prompt_tokens_details']?.['cached_tokens'] ?? usage['num_cached_tokens'] ?? usage['prompt_cache_hit_tokens'];
}
