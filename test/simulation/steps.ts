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
  'batch acknowledged, not noted',
  'starting',
  'draining',
] as const;

/** With slices there is one more. */
export const SLICED_STEP = 'extension being written';

export type Step = (typeof STEPS)[number] | typeof SLICED_STEP;
