import type { JsonObject } from '../../schemas/json.ts';
import type { MessagesRequestBody } from './parse-request.ts';

/** Fields that chat calls otherwise. */
const NAMES: Readonly<Record<string, string>> = {
  max_completion_tokens: 'max_tokens',
  stop: 'stop_sequences',
  response_format: 'output_config.format',
  verbosity: 'output_config.effort',
  reasoning: 'thinking',
  user: 'metadata.user_id',
  parallel_tool_calls: 'tool_choice.disable_parallel_tool_use',
};

/** A message, or a part of one. */
const ENTRY = /^messages\[(\d+)\](?:\.content\[(\d+)\])?/;

/** How a client of this API calls a field of the inner language. */
export function messagesFieldNames(body: Pick<MessagesRequestBody, 'messages' | 'system'>): (field: string) => string {
  let messages: readonly Name[] | undefined;
  return (field) => {
    const [, nth, part] = ENTRY.exec(field) ?? [];
    if (nth === undefined) return NAMES[field] ?? field;
    messages ??= messageNames(body);
    return messages[Number(nth)]?.(part === undefined ? undefined : Number(part)) ?? 'messages';
  };
}

/** The name of a message, or that of one of its parts. */
type Name = (part: number | undefined) => string;

function within(place: string): Name {
  return (part) => (part === undefined ? place : `${place}.content[${part}]`);
}

/** Of each inner message its name. The prompt of the system is one, and each result of a tool is, before what else its message says. */
function messageNames({ system, messages }: Pick<MessagesRequestBody, 'messages' | 'system'>): Name[] {
  const names: Name[] = [];
  if (typeof system === 'string' || (Array.isArray(system) && system.length > 0)) {
    names.push((part) => (part === undefined || typeof system === 'string' ? 'system' : `system[${part}]`));
  }
  for (const [i, { role, content }] of messages.entries()) {
    const place = `messages[${i}]`;
    // A turn of the model is read as a whole.
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
