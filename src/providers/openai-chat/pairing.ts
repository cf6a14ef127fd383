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
  const resultOf = findResults(messages);
  const others = countOthers(messages);
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
      const at = resultOf(i, call.id);
      if (at === undefined) {
        tell(`messages[${i}].tool_calls`, 'a call without a result gets an empty one');
        out.push({ role: 'tool', tool_call_id: call.id, content: '(no result)' });
        continue;
      }
      used.add(at);
      if (others[at]! > others[i + 1]!) {
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

/** How many messages before each one are no tool messages. */
function countOthers(messages: readonly Message[]): number[] {
  const counts = [0];
  for (const [i, { role }] of messages.entries()) counts.push(counts[i]! + (role === 'tool' ? 0 : 1));
  return counts;
}

/** Where an id stands, and how far it has been gone through. Calls are asked for in order, so nothing is read twice. */
interface Places {
  results: number[];
  turns: number[];
  nextResult: number;
  nextTurn: number;
}

/** Finds the first unused result of an id after a turn's calls, up to the next turn that makes a call of the same id. */
function findResults(messages: readonly Message[]): (from: number, id: string) => number | undefined {
  const places = new Map<string, Places>();
  const placesOf = (id: string): Places => {
    let found = places.get(id);
    if (found === undefined) {
      found = { results: [], turns: [], nextResult: 0, nextTurn: 0 };
      places.set(id, found);
    }
    return found;
  };
  for (const [i, message] of messages.entries()) {
    if (message.role === 'tool') placesOf(message.tool_call_id ?? '').results.push(i);
    else for (const { id } of message.tool_calls ?? []) placesOf(id).turns.push(i);
  }
  return (from, id) => {
    const place = placesOf(id);
    while (place.results[place.nextResult]! <= from) place.nextResult += 1;
    while (place.turns[place.nextTurn]! <= from) place.nextTurn += 1;
    const at = place.results[place.nextResult];
    if (at === undefined || at > (place.turns[place.nextTurn] ?? messages.length)) return undefined;
    place.nextResult += 1;
    return at;
  };
}

function orphan(message: Message): Message {
  const { content, name, tool_call_id: toolCallId } = message;
  const label = `Tool result (${name ?? toolCallId ?? 'unknown'}):`;
  if (!Array.isArray(content)) return { role: 'user', content: `${label} ${content ?? ''}` };
  return { role: 'user', content: [{ type: 'text', text: label }, ...content] };
}
