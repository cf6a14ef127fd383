import type { Loss } from './memory-disk.ts';

/** Every step of the protocol at which a process can end. */
export const STEPS = [
  'asked',
  'held',
  'attempt being written',
  'attempt durable',
  'sent',
  'upstream at work',
  'answered',
  'first attempt failed, next asked',
  'outcome being written',
  'outcome written, client not informed',
  'client informed',
  'batch on its way',
  'batch applied, answer on its way',
  'money given back, answer on its way',
  'batch acknowledged, not noted',
  'segment put away',
  'starting',
  'draining',
] as const;

/** Steps right after a message about data that may not be on the disk yet, where a power loss loses most. */
export const FRESH: readonly Step[] = ['sent', 'money given back, answer on its way', 'segment put away'];

/** With slices there is one more. */
export const SLICED_STEP = 'extension being written';

/** Too rare to be hit by chance; for runs that are aimed at it. */
export const LOSABLE_STEP = 'money given back, an outcome can be lost';

/** A provider has an attempt that a power loss would remove: with `group` only if the journal is wrong. */
export const UNSAFE_STEP = 'sent, and not on the disk';

/** A node that cannot reach the store has given an attempt the last of its money, some of which outcomes have freed. */
export const LAST_MONEY_STEP = 'sent with the last money, store out of reach';

/** What a power loss removes that is aimed at a step. Default: all unsynced data. */
export const AIMED_LOSS: Partial<Record<Step, Loss>> = { [LAST_MONEY_STEP]: 'last outcomes' };

export type Step =
  | (typeof STEPS)[number]
  | typeof SLICED_STEP
  | typeof LOSABLE_STEP
  | typeof UNSAFE_STEP
  | typeof LAST_MONEY_STEP;
