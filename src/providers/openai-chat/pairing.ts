import type { Message } from '../../schemas/inner.ts';

/**
 * Every call with one result, directly after the calls: what servers of this wire ask for. A conversation that is in
 * order comes back as the same list. `tell` hears of each repair.
 */
export function pairToolMessages(
  messages: readonly Message[],
  tell: (field: string, reason: string) => void,
): readonly Message[] {
  if (isPaired(messages)) return messages;
  const out: Message[] = [];
  const used = new Set<number>();
  messages.forEach((message, i) => {
    if (used.has(i)) return;
    if (message.role === 'tool') {
      // No call is waiting for it: its text is still worth knowing.
      tell(`messages[${i}]`, 'a tool result without its call is sent as text');
      out.push(orphan(message));
      return;
    }
    out.push(message);
    for (const call of message.tool_calls ?? []) {
      const at = resultOf(messages, i, call.id, used);
      if (at === undefined) {
        tell(`messages[${i}].tool_calls`, 'a call without its result is given an empty one');
        out.push({ role: 'tool', tool_call_id: call.id, content: '(no result)' });
        continue;
      }
      used.add(at);
      if (messages.slice(i + 1, at).some((between) => between.role !== 'tool')) {
        tell(`messages[${at}]`, 'a tool result is sent directly after its call');
      }
      out.push(messages[at]!);
    }
  });
  return out;
}

function isPaired(messages: readonly Message[]): boolean {
  let waiting: Set<string> | undefined;
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!waiting?.delete(message.tool_call_id ?? '')) return false;
      continue;
    }
    if (waiting !== undefined && waiting.size > 0) return false;
    waiting = message.tool_calls?.length ? new Set(message.tool_calls.map((call) => call.id)) : undefined;
  }
  return waiting === undefined || waiting.size === 0;
}

/** The first unused result of this id after the calls, up to the next turn that makes a call of the same id. */
function resultOf(
  messages: readonly Message[],
  from: number,
  id: string,
  used: ReadonlySet<number>,
): number | undefined {
  for (let i = from + 1; i < messages.length; i += 1) {
    const message = messages[i]!;
    if (message.role === 'tool' && message.tool_call_id === id && !used.has(i)) return i;
    if (message.tool_calls?.some((call) => call.id === id)) return undefined;
  }
  return undefined;
}

function orphan(message: Message): Message {
  const { content, name, tool_call_id } = message;
  const label = `Tool result (${name ?? tool_call_id ?? 'unknown'}):`;
  if (!Array.isArray(content)) return { role: 'user', content: `${label} ${content ?? ''}` };
  return { role: 'user', content: [{ type: 'text', text: label }, ...content] };
}
