import type { Category } from '../schemas/model.ts';

/**
 * What names of models tell of their use: those that their makers made for one thing say so in it, or are their makers'
 * only kind. A general model is in no category until the operator puts it there.
 */
const rules: readonly [Category, RegExp][] = [
  ['programming', /cod(?:e|er|ex)\b|codestral|devstral|starcoder|^morph\/|mercury-edit|grok-build/],
  ['roleplay', /^(?:sao10k|gryphe|thedrummer|neversleep|anthracite-org)\/|-character\b/],
  ['translation', /translat|-mt-|\btower/],
  ['health', /baichuan-m\d|medgemma|palmyra-med/],
  ['finance', /palmyra-fin|finma/],
  ['legal', /\bsaul-/],
  ['science', /prover|minerva/],
];

/** The categories that a model's id tells. */
export function categoriesOf(id: string): readonly Category[] {
  return rules.filter(([, pattern]) => pattern.test(id)).map(([category]) => category);
}
