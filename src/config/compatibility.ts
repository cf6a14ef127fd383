import type { ReadFile } from './read-file.ts';

/** How values are read that clients send and the API does not have. */
export interface CompatibilityConfig {
  /** What becomes of a `top_k`, `top_p` or `repetition_penalty` by which chat clients mean "off". */
  sampler_off_values: 'refuse' | 'ignore';
}

export function readCompatibility(file: ReadFile | undefined): CompatibilityConfig {
  return { sampler_off_values: file?.value.compatibility?.sampler_off_values ?? 'refuse' };
}
