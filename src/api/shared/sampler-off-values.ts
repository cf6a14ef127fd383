import type { HttpRequest } from '../../http/request.ts';
import { ValidationError } from '../../http/validation.ts';
import type { Report } from '../../providers/dialect.ts';

declare module '../../http/request.ts' {
  interface HttpRequest {
    /** Changes that were made to the body before its validation. Not set: none. */
    body_changes?: Report[];
  }
}

/** What happens to such a value: a 400, or it is treated as not set. */
export type SamplerOffValues = 'refuse' | 'ignore';

/** Values by which chat clients mean "off", with the rule that refuses them. */
const OFF_VALUES = {
  top_k: { values: [0, -1], rule: 'must be at least 1' },
  top_p: { values: [0], rule: 'must be greater than 0' },
  repetition_penalty: { values: [0], rule: 'must be greater than 0' },
} as const;
type Sampler = keyof typeof OFF_VALUES;
const SAMPLERS = Object.keys(OFF_VALUES) as Sampler[];

const HINT = 'to turn it off, leave it out, or ask the operator to set compatibility.sampler_off_values: ignore';

/** Replaces a value by null if it means "off". Throws a `ValidationError` if such values are refused. */
function replaceOffValue(request: HttpRequest, field: Sampler, mode: () => SamplerOffValues): void {
  const body = request.body as Record<string, unknown>;
  const { values, rule } = OFF_VALUES[field];
  if (!(values as readonly unknown[]).includes(body[field])) return;
  if (mode() === 'refuse') throw new ValidationError('body', [{ path: field, rule: `${rule}; ${HINT}` }]);
  request.body_changes ??= [];
  request.body_changes.push({ kind: 'dropped', field, reason: `${body[field]} turns it off` });
  body[field] = null;
}

/**
 * Makes the check of sampler values before validation (`prepareBody`): values that mean "off" are treated as not set if the operator allows it,
 * otherwise they are a 400 that names the setting.
 */
export function checkSamplers(mode: () => SamplerOffValues, fields: readonly Sampler[] = SAMPLERS) {
  return (request: HttpRequest): undefined => {
    const body = (request.body ?? {}) as Record<string, unknown>;
    for (const field of fields) if (body[field] != null) replaceOffValue(request, field, mode);
  };
}
