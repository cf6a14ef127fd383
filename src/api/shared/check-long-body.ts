import { setImmediate as nextTurn } from 'node:timers/promises';
import { invalidField } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { type AddressRules, checkAddresses } from './check-addresses.ts';

function countParts(list: unknown): number {
  if (!Array.isArray(list)) return 0;
  let parts = list.length;
  // Results of tools have parts of their own.
  for (const part of list) if (Array.isArray(part?.content)) parts += part.content.length;
  return parts;
}

/** Refuses more parts of messages than an operation rewrites at once. Throws `GatewayError` 400. */
export function checkParts(body: unknown): void {
  const { messages, system } = (body ?? {}) as { messages?: unknown; system?: unknown };
  let parts = countParts(system);
  for (const message of Array.isArray(messages) ? messages : []) parts += countParts(message?.content);
  if (parts > limits.input_parts_max) {
    throw invalidField('messages', `must have at most ${limits.input_parts_max} parts in all`);
  }
}

/** Checks a long body beyond its schema. Validation before it, and what follows, have turns of the loop of their own. */
export async function checkLongBody(body: unknown, rules: AddressRules): Promise<void> {
  checkParts(body);
  await nextTurn();
  checkAddresses(body, rules);
  await nextTurn();
}
