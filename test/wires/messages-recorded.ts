/** Expected answers for clients of the Messages API, from recorded answers of Anthropic's wire. */
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import type { Allowed } from '../readings/differences.ts';
import { object } from '../readings/recordings.ts';
import { accumulatedBySdk } from './messages-reading.ts';

export const isNull = (_: JsonValue | undefined, after: JsonValue | undefined) => after === null;

/** Allowed differences from an Anthropic answer; any other difference is a fault. */
export const CHANGED_FOR_CLIENTS: readonly Allowed[] = [
  { place: /^\.id changed$/, reason: 'the id of a message is that of its generation' },
  { place: /^\.model changed$/, reason: 'the model has its public name' },
  { place: /^\.provider added$/, reason: 'the provider' },
  { place: /^\.usage\.(cost|cost_details|is_byok) added$/, reason: 'the cost' },
  { place: /^\.(stop_details|container) added$/, reason: 'current fields are present as null', holds: isNull },
  { place: /^\.usage\.\w+ added$/, reason: 'counts that were not reported are null', holds: isNull },
  {
    place: /^\.usage\.cache_creation added$/,
    reason: 'cache writes reported only as a sum count as five minutes',
    holds: (_, after) => object(after)['ephemeral_1h_input_tokens'] === 0,
  },
  {
    place: /^\.usage\.cache_creation\.ephemeral_5m_input_tokens changed$/,
    reason: 'the split is reported only at the beginning; later writes count as five minutes',
    holds: (before, after) => Number(after) > Number(before),
  },
  {
    place: /^\.usage\.server_tool_use\.web_fetch_requests added$/,
    reason: 'an omitted tool of the provider was not used',
    holds: (_, after) => after === 0,
  },
];

/** The message of the first answer of a recorded stream: blocks by the official client, counts from its last events. */
export async function recordedMessage(bytes: Uint8Array): Promise<JsonObject> {
  const events = new TextDecoder()
    .decode(bytes)
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => object(JSON.parse(line.slice('data:'.length)) as JsonValue));
  const idOf = (event: JsonObject) => object(event['message'])['id'];
  const next = events.findIndex((event) => event['type'] === 'message_start' && idOf(event) !== idOf(events[0]!));
  const answer = next === -1 ? events : events.slice(0, next);
  // A beginning that a proxy repeats adds nothing.
  const answerEvents = answer.filter((event, i) => event['type'] !== 'message_start' || i === 0);
  const { parsed_output: _, ...message } = await accumulatedBySdk(answerEvents, 'beta');
  const counted = answerEvents.map((event) => object(event['usage'] ?? object(event['message'])['usage']));
  const usage = Object.fromEntries(counted.flatMap((one) => Object.entries(one).filter(([, value]) => value !== null)));
  const started = object(object(answerEvents[0]!['message'])['usage']);
  return { ...message, model: object(answerEvents[0]!['message'])['model'], usage: { ...started, ...usage } };
}
