import { groupItems } from '../../providers/openai-responses/from-wire.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import type { ResponsesRequestBody } from '../../schemas/responses.ts';

/** Fields with another name in chat. */
const NAMES: Readonly<Record<string, string>> = lookupTable({
  messages: 'input',
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text.format',
  verbosity: 'text.verbosity',
  reasoning_effort: 'reasoning.effort',
  logprobs: 'include',
});

/** Matches a message, a tool, or a part of one. */
const ENTRY = /^(messages|tools)\[(\d+)\](?:\.content(\[\d+\]))?/;

/** Maps field names of the inner language to those of this API. The first `former` items of the input belong to a former response. */
export function responsesFieldNames(body: ResponsesRequestBody, former: number): (field: string) => string {
  let messages: readonly ((part: string) => string)[] | undefined;
  let tools: readonly string[] | undefined;
  return (field) => {
    const [, list, nth, part = ''] = ENTRY.exec(field) ?? [];
    if (list === undefined) return NAMES[field] ?? (field.startsWith('messages') ? 'input' : field);
    if (list === 'messages') {
      messages ??= messageNames(body, former);
      return messages[Number(nth)]?.(part) ?? 'input';
    }
    tools ??= toolNames(body);
    return tools[Number(nth)] ?? 'tools';
  };
}

/** A name for each message, or for one of its parts. */
function messageNames({ instructions, input }: ResponsesRequestBody, former: number): ((part: string) => string)[] {
  const names: ((part: string) => string)[] = typeof instructions === 'string' ? [() => 'instructions'] : [];
  if (!Array.isArray(input)) return names;
  for (const { kind, items, first, last } of groupItems(input as unknown as JsonValue[])) {
    const place = `input[${first - former}]`;
    if (first < former) names.push(() => (last < former ? 'previous_response_id' : 'input'));
    // The items of a turn are one message, so errors name all of them.
    else if (first < last) names.push(() => `${place} to input[${last - former}]`);
    else if (kind === 'result') names.push((part) => (part === '' ? place : `${place}.output${part}`));
    else if (kind === 'other' && items[0]?.type === 'message')
      names.push((part) => (part === '' ? place : `${place}.content${part}`));
    else names.push(() => place);
  }
  return names;
}

/** A name for each tool; tools of a namespace are named inside it. */
function toolNames({ tools }: ResponsesRequestBody): string[] {
  return (tools ?? []).flatMap((tool, i) => {
    const { type, tools: inside } = tool as unknown as JsonObject;
    if (type !== 'namespace' || !Array.isArray(inside)) return [`tools[${i}]`];
    return inside.map((_, nth) => `tools[${i}].tools[${nth}]`);
  });
}
