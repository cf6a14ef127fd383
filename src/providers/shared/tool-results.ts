import type { Message, ToolCall } from '../../schemas/inner.ts';

/** Tool results by the call that they answer, and results without a call. */
export interface Pairs {
  results: Map<ToolCall, { message: Message; field: string }>;
  orphans: Set<Message>;
  /** The tool's name by call id, for results whose call is missing. */
  names: Map<string, string>;
}

/** Pairs each result with its call: the latest turn with an open call of that id. */
export function pairResults(messages: readonly Message[]): Pairs {
  const pairs: Pairs = { results: new Map(), orphans: new Set(), names: new Map() };
  // By id, the open calls of each turn, the next one to be answered last: no list of calls is ever searched, however long it is and
  // however often calls share an id.
  const open = new Map<string, ToolCall[][]>();
  for (const [i, message] of messages.entries()) {
    if (message.role === 'assistant' && message.tool_calls != null) {
      const turn = new Map<string, ToolCall[]>();
      for (const call of message.tool_calls.toReversed()) {
        const calls = turn.get(call.id);
        if (calls === undefined) turn.set(call.id, [call]);
        else calls.push(call);
        pairs.names.set(call.id, call.function.name);
      }
      for (const [id, openCalls] of turn) {
        const turns = open.get(id);
        if (turns === undefined) open.set(id, [openCalls]);
        else turns.push(openCalls);
      }
    }
    if (message.role !== 'tool') continue;
    const turns = open.get(message.tool_call_id ?? '');
    const call = turns?.at(-1)?.pop();
    if (call === undefined) pairs.orphans.add(message);
    else pairs.results.set(call, { message, field: `messages[${i}]` });
    if (turns?.at(-1)?.length === 0) turns.pop();
  }
  return pairs;
}

/** Gives every call an id that the wire accepts and that is unique in the conversation. Appends the ids to `callIds`. */
export function nameCalls(
  messages: readonly Message[],
  toWireId: (id: string) => string,
  callIds: string[],
): Map<ToolCall, string> {
  const ids = new Map<ToolCall, string>();
  const taken = new Set<string>();
  const repeats = new Map<string, number>();
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    for (const call of message.tool_calls ?? []) {
      let id = toWireId(call.id);
      while (taken.has(id)) {
        const n = (repeats.get(call.id) ?? 0) + 1;
        repeats.set(call.id, n);
        id = toWireId(`${call.id}#${n}`);
      }
      taken.add(id);
      ids.set(call, id);
      callIds.push(id);
    }
  }
  return ids;
}
