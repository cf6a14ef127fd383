import type { ReadFile } from './read-file.ts';

/** How answers look where official clients read another form than the API has. */
export interface CompatibilityConfig {
  /** Of the `status` of endpoints: a text, as the API has it, or a number. */
  endpoint_status: 'string' | 'integer';
}

export function readCompatibility(file: ReadFile | undefined): CompatibilityConfig {
  return { endpoint_status: file?.value.compatibility?.endpoint_status ?? 'string' };
}
