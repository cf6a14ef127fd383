import type { JsonObject } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import type { MessagesRequestBody } from './parse-request.ts';

/** Fields with another name in chat. */
const NAMES: Readonly<Record<string, string>> = lookupTable({
  max_completion_tokens: 'max_tokens',
  stop: 'stop_sequences',
  response_format: 'output_config.format',
  verbosity: 'output_config.effort',
  reasoning: 'thinking',
  user: 'metadata.user_id',
  parallel_tool_calls: 'tool_choice.disable_parallel_tool_use',
});

/** Matches a message, or a part of one. */
const ENTRY = /^messages\[(\d+)\](?:\.content\[(\d+)\])?/;

/** Maps field names of the inner language to those of this API. */
export function messagesFieldNames(body: Pick<MessagesRequestBody, 'messages' | 'system'>): (field: string) => string {
  let messages: readonly Name[] | undefined;
  return (field) => {
    const [, nth, part] = ENTRY.exec(field) ?? [];
    if (nth === undefined) return NAMES[field] ?? field;
    messages ??= messageNames(body);
    return messages[Number(nth)]?.(part === undefined ? undefined : Number(part)) ?? 'messages';
  };
}

/** Makes the name of a message, or of one of its parts. */
type Name = (part: number | undefined) => string;

function within(place: string): Name {
  return (part) => (part === undefined ? place : `${place}.content[${part}]`);
}

/** A name for each inner message. The system prompt is a message, and each tool result is one before the rest of its message. */
function messageNames({ system, messages }: Pick<MessagesRequestBody, 'messages' | 'system'>): Name[] {
  const names: Name[] = [];
  if (typeof system === 'string' || (Array.isArray(system) && system.length > 0)) {
    names.push((part) => (part === undefined || typeof system === 'string' ? 'system' : `system[${part}]`));
  }
  for (const [i, { role, content }] of messages.entries()) {
    const place = `messages[${i}]`;
    // A turn of the model is one message.
    if (role === 'assistant') names.push(() => place);
    else if (typeof content === 'string') names.push(() => `${place}.content`);
    else if (role === 'system') names.push(within(place));
    else {
      const types = (content as unknown as JsonObject[]).map(({ type }) => type);
      const at = [...types.keys()];
      const others = at.filter((nth) => types[nth] !== 'tool_result');
      for (const nth of at) if (types[nth] === 'tool_result') names.push(within(`${place}.content[${nth}]`));
      if (others.length > 0 || others.length === at.length) {
        names.push((part) => (part === undefined ? place : `${place}.content[${others[part]}]`));
      }
    }
  }
  return names;
}
