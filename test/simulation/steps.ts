/** Every place of the protocol at which a process can end. */
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
  'outcome written, client not told',
  'client told',
  'batch on its way',
  'batch applied, answer on its way',
  'money given back, answer on its way',
  'batch acknowledged, not noted',
  'segment put away',
  'starting',
  'draining',
] as const;

/** Where somebody else was just told of what may not be on the disk yet. A power loss there takes most. */
export const FRESH: readonly Step[] = ['sent', 'money given back, answer on its way', 'segment put away'];

/** With slices there is one more. */
export const SLICED_STEP = 'extension being written';

/** Too rare to be hit by chance; for runs that are aimed at it. */
export const LOSABLE_STEP = 'money given back, an outcome can be lost';

export type Step = (typeof STEPS)[number] | typeof SLICED_STEP | typeof LOSABLE_STEP;
