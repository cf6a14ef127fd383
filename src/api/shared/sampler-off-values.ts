import type { HttpReply, HttpRequest } from '../../http/request.ts';
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

/** Replaces values that mean "off" by null. Throws a `ValidationError` if they are refused. */
function replaceOffValues(
  request: HttpRequest,
  body: Record<string, unknown>,
  mode: () => SamplerOffValues,
  fields: readonly Sampler[],
): void {
  for (const field of fields) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    const { values, rule } = OFF_VALUES[field];
    if (!(values as readonly unknown[]).includes(value)) continue;
    if (mode() === 'refuse') throw new ValidationError('body', [{ path: field, rule: `${rule}; ${HINT}` }]);
    body[field] = null;
    request.body_changes ??= [];
    request.body_changes.push({ kind: 'dropped', field, reason: `${value} turns it off` });
  }
}

/**
 * Makes the hook that checks sampler values before validation: values that mean "off" are treated as not set if the operator allows it,
 * otherwise they are a 400 that names the setting.
 */
export function checkSamplers(mode: () => SamplerOffValues, fields: readonly Sampler[] = SAMPLERS) {
  return (request: HttpRequest, _reply: HttpReply, done: (error?: Error) => void): void => {
    const { body } = request;
    try {
      if (typeof body === 'object' && body !== null)
        replaceOffValues(request, body as Record<string, unknown>, mode, fields);
    } catch (error) {
      done(error as Error);
      return;
    }
    done();
  };
}
