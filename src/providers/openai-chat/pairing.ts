import type { Message } from '../../schemas/inner.ts';

/**
 * Gives every call one result, directly after the calls, as servers of this wire require. Returns the same list if it is in order.
 * Calls `addReport` for each repair.
 */
export function pairToolMessages(
  messages: readonly Message[],
  addReport: (field: string, reason: string) => void,
): readonly Message[] {
  if (isPaired(messages)) return messages;
  const out: Message[] = [];
  const used = new Set<number>();
  const resultOf = findResults(messages);
  const others = countOthers(messages);
  messages.forEach((message, i) => {
    if (used.has(i)) return;
    if (message.role === 'tool') {
      // No open call has this id: the result is kept as text.
      addReport(`messages[${i}]`, 'a tool result without its call is sent as text');
      out.push(orphan(message));
      return;
    }
    out.push(message);
    for (const call of message.tool_calls ?? []) {
      const at = resultOf(i, call.id);
      if (at === undefined) {
        addReport(`messages[${i}].tool_calls`, 'a call without a result gets an empty one');
        out.push({ role: 'tool', tool_call_id: call.id, content: '(no result)' });
        continue;
      }
      used.add(at);
      if (others[at]! > others[i + 1]!) {
        addReport(`messages[${at}]`, 'a tool result is sent directly after its call');
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

/** For each message, the number of messages before it that are not tool messages. */
function countOthers(messages: readonly Message[]): number[] {
  const counts = [0];
  for (const [i, { role }] of messages.entries()) counts.push(counts[i]! + (role === 'tool' ? 0 : 1));
  return counts;
}

/** The positions of an id, and the next ones to read. Calls are looked up in order, so nothing is read twice. */
interface Occurrences {
  results: number[];
  turns: number[];
  nextResult: number;
  nextTurn: number;
}

/** A function that returns the first unused result of an id after a turn's calls, before the next turn with a call of the same id. */
function findResults(messages: readonly Message[]): (from: number, id: string) => number | undefined {
  const byId = new Map<string, Occurrences>();
  const occurrencesOf = (id: string): Occurrences => {
    let occurrences = byId.get(id);
    if (occurrences === undefined) {
      occurrences = { results: [], turns: [], nextResult: 0, nextTurn: 0 };
      byId.set(id, occurrences);
    }
    return occurrences;
  };
  for (const [i, message] of messages.entries()) {
    if (message.role === 'tool') occurrencesOf(message.tool_call_id ?? '').results.push(i);
    else for (const { id } of message.tool_calls ?? []) occurrencesOf(id).turns.push(i);
  }
  return (from, id) => {
    const occurrences = occurrencesOf(id);
    while (occurrences.results[occurrences.nextResult]! <= from) occurrences.nextResult += 1;
    while (occurrences.turns[occurrences.nextTurn]! <= from) occurrences.nextTurn += 1;
    const at = occurrences.results[occurrences.nextResult];
    if (at === undefined || at > (occurrences.turns[occurrences.nextTurn] ?? messages.length)) return undefined;
    occurrences.nextResult += 1;
    return at;
  };
}

function orphan(message: Message): Message {
  const { content, name, tool_call_id: toolCallId } = message;
  const label = `Tool result (${name ?? toolCallId ?? 'unknown'}):`;
  if (!Array.isArray(content)) return { role: 'user', content: `${label} ${content ?? ''}` };
  return { role: 'user', content: [{ type: 'text', text: label }, ...content] };
}
