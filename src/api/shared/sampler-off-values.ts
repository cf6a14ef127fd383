import type { FastifyReply, FastifyRequest } from 'fastify';
import { ValidationError } from '../../http/validation.ts';
import type { Report } from '../../providers/dialect.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What was changed of its body before it was validated. Absent: nothing. */
    body_changes?: Report[];
  }
}

/** What becomes of such a value: it is a 400, or counts as absent. */
export type SamplerOffValues = 'refuse' | 'ignore';

/** Values by which chat clients mean "off", and the rule of the API that refuses them. */
const OFF_VALUES = {
  top_k: { values: [0, -1], rule: 'must be at least 1' },
  top_p: { values: [0], rule: 'must be greater than 0' },
  repetition_penalty: { values: [0], rule: 'must be greater than 0' },
} as const;
type Sampler = keyof typeof OFF_VALUES;
const SAMPLERS = Object.keys(OFF_VALUES) as Sampler[];

const HINT = 'to turn it off, leave it out, or ask the operator to set compatibility.sampler_off_values: ignore';

/** Puts null in the place of values that mean "off". Throws a `ValidationError` where they are refused. */
function takeOff(
  request: FastifyRequest,
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
 * Makes the hook that looks at a body before it is validated: sampler values that mean "off" count as absent where the operator says
 * so, and are a 400 that names the setting elsewhere.
 */
export function checkSamplers(mode: () => SamplerOffValues, fields: readonly Sampler[] = SAMPLERS) {
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    const { body } = request;
    try {
      if (typeof body === 'object' && body !== null) takeOff(request, body as Record<string, unknown>, mode, fields);
    } catch (error) {
      done(error as Error);
      return;
    }
    done();
  };
}
