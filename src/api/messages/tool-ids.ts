import { fitCallId } from '../../providers/shared/tool-ids.ts';

const CHARS_MAX = 64;
/** What the wire takes (https://platform.claude.com/docs/en/api/messages, `tool_use.id`). */
const LEGAL = /^[A-Za-z0-9_-]{1,64}$/;
const PREFIX = 'gwid_';
const STAND_IN_CHARS = 32;

/**
 * A call's id as clients of the Messages API may send it on: itself, or letters of base64url that `innerCallId` reads back. Where
 * those have no room, a stand-in that is always the same for it.
 */
export function shownCallId(id: string): string {
  if (LEGAL.test(id) && !id.startsWith(PREFIX)) return id;
  const packed = PREFIX + Buffer.from(id).toString('base64url');
  return packed.length <= CHARS_MAX ? packed : fitCallId(id, LEGAL, STAND_IN_CHARS);
}

/** The id of a call that a client names as it was shown one. */
export function innerCallId(id: string): string {
  if (!id.startsWith(PREFIX)) return id;
  const told = Buffer.from(id.slice(PREFIX.length), 'base64url').toString();
  return shownCallId(told) === id ? told : id;
}
