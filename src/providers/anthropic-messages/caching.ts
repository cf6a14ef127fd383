import { limits } from '../../limits.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import type { Encoding } from './to-wire.ts';
import type { WireRequest } from './wire.ts';

/**
 * Limits the cache breakpoints to what the wire allows: at most four, including the automatic one of the top level, of which the last
 * are kept; none on thinking; hours before minutes
 * (https://platform.claude.com/docs/en/build-with-claude/prompt-caching). Changed objects are replaced, not edited.
 */
export function limitBreakpoints(body: WireRequest, encoding: Encoding): void {
  const holders = breakpointHolders(body);
  const allowed = limits.cache_breakpoints_max - (body.cache_control === undefined ? 0 : 1);
  const surplus = Math.max(0, holders.length - allowed);
  for (const holder of holders.slice(0, surplus)) {
    holder.replace(without(holder.object));
    encoding.addReport(
      'dropped',
      'cache_control',
      `at most ${limits.cache_breakpoints_max} breakpoints: the last ones are kept`,
    );
  }
  let isShort = false;
  for (const { object, replace } of holders.slice(surplus)) {
    const hint = asObject(object['cache_control']);
    if (hint?.['ttl'] !== '1h') isShort = true;
    else if (isShort) {
      replace({ ...object, cache_control: { type: 'ephemeral' } });
      encoding.addReport(
        'changed',
        'cache_control',
        'a breakpoint of 1h cannot follow one of 5m: it was changed to 5m',
      );
    }
  }
  if (isShort && body.cache_control?.ttl === '1h') {
    body.cache_control = { type: 'ephemeral' };
    encoding.addReport('changed', 'cache_control', 'a breakpoint of 1h cannot follow one of 5m: it was changed to 5m');
  }
}

interface Holder {
  object: JsonObject;
  replace(object: JsonObject): void;
}

/** Every object with a breakpoint, in the order of the prompt: tools, system, messages. */
function breakpointHolders(body: WireRequest): Holder[] {
  const holders: Holder[] = [];
  const scan = (list: JsonObject[]) => {
    for (const [i, object] of list.entries()) {
      if (object['type'] === 'thinking' || object['type'] === 'redacted_thinking') {
        if (object['cache_control'] !== undefined) list[i] = without(object);
        continue;
      }
      if (object['type'] === 'tool_result' && Array.isArray(object['content'])) {
        const content = [...asArray(object['content'])] as JsonObject[];
        scan(content);
        list[i] = { ...object, content };
      }
      if (asObject(object['cache_control']) === undefined) continue;
      holders.push({ object: list[i]!, replace: (changed) => void list.splice(i, 1, changed) });
    }
  };
  if (body.tools !== undefined) scan(body.tools);
  if (body.system !== undefined) scan(body.system);
  for (const message of body.messages) scan(message.content);
  return holders;
}

function without(object: JsonObject): JsonObject {
  const { cache_control: _dropped, ...kept } = object;
  return kept;
}
