import { invalidField } from '../../errors.ts';
import { inTurns } from '../../http/in-turns.ts';
import type { HttpRequest } from '../../http/request.ts';
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import { type AddressRules, addressChecks, checkAddresses } from './check-addresses.ts';

function countParts(list: unknown): number {
  if (!Array.isArray(list)) return 0;
  let parts = list.length;
  // Tool results have parts of their own.
  for (const part of list) if (Array.isArray(part?.content)) parts += part.content.length;
  return parts;
}

/** Throws a `GatewayError` 400 if the messages have more parts than an operation may rewrite at once. */
export function checkParts(body: unknown): void {
  const { messages, system } = (body ?? {}) as { messages?: unknown; system?: unknown };
  let parts = countParts(system);
  for (const message of Array.isArray(messages) ? messages : []) parts += countParts(message?.content);
  if (parts > limits.input_parts_max) {
    throw invalidField('messages', `must have at most ${limits.input_parts_max} parts in all`);
  }
}

/** Checks a long body. Uses turns of the event loop of its own, after validation and before what follows. */
async function checkLongBody(body: unknown, rules: AddressRules): Promise<void> {
  checkParts(body);
  await nextTurn();
  await inTurns(addressChecks(body, rules));
  await nextTurn();
}

/** Makes the check of the bodies of metered operations beyond their schemas. It throws or rejects with a 400 that names the field. */
export function createBodyCheck(rules: AddressRules) {
  return ({ body, long_body_bytes }: HttpRequest): Promise<void> | undefined => {
    if (long_body_bytes > 0) return checkLongBody(body, rules);
    checkAddresses(body, rules);
    return undefined;
  };
}
