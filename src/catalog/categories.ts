import type { Category } from '../schemas/model.ts';

/**
 * Categories by names of models: models for one purpose have it in their names, or are their makers' only kind. A general model has no
 * category unless the operator sets one.
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

/** The categories that follow from a model's id. */
export function categoriesOf(id: string): readonly Category[] {
  return rules.filter(([, pattern]) => pattern.test(id)).map(([category]) => category);
}
