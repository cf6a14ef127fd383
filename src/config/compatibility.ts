import type { ReadFile } from './read-file.ts';

/** Where this gateway differs from the API for the sake of clients that expect something else. */
export interface CompatibilityConfig {
  /** Of the `status` of endpoints: a text, as the API has it, or a number. */
  endpoint_status: 'string' | 'integer';
  /** What becomes of a `top_k`, `top_p` or `repetition_penalty` by which chat clients mean "off". */
  sampler_off_values: 'refuse' | 'ignore';
}

export function readCompatibility(file: ReadFile | undefined): CompatibilityConfig {
  const { endpoint_status = 'string', sampler_off_values = 'refuse' } = file?.value.compatibility ?? {};
  return { endpoint_status, sampler_off_values };
}
