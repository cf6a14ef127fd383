import { fitCallId } from '../../providers/shared/tool-ids.ts';

const CHARS_MAX = 64;
/** Ids that the wire accepts (https://platform.claude.com/docs/en/api/messages, `tool_use.id`). */
const LEGAL = /^[A-Za-z0-9_-]{1,64}$/;
const PREFIX = 'gwid_';
const STAND_IN_CHARS = 32;

/**
 * The id of a call for clients of the Messages API: itself if it is valid, else its base64url form, which `innerCallId` decodes; if
 * that is too long, a constant replacement for it.
 */
export function shownCallId(id: string): string {
  if (LEGAL.test(id) && !id.startsWith(PREFIX)) return id;
  const packed = PREFIX + Buffer.from(id).toString('base64url');
  return packed.length <= CHARS_MAX ? packed : fitCallId(id, LEGAL, STAND_IN_CHARS);
}

/** The original id of a call that a client names by its shown id. */
export function innerCallId(id: string): string {
  if (!id.startsWith(PREFIX)) return id;
  const decoded = Buffer.from(id.slice(PREFIX.length), 'base64url').toString();
  return shownCallId(decoded) === id ? decoded : id;
}
