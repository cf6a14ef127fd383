import { limits } from '../limits.ts';
import type { ReadFile } from './read-file.ts';

/** What the file says of filters of content. */
export interface GuardrailsConfig {
  /** What becomes of a request where a filter cannot be applied: it is refused, or goes on unread. */
  on_failure: 'block' | 'allow';
  /** For finding the names and addresses of one request. */
  timeout_ms: number;
}

/** Reads the section `guardrails`. */
export function readGuardrails(file: ReadFile | undefined): GuardrailsConfig {
  const { on_failure = 'block', timeout_ms = limits.analysis_ms } = file?.value.guardrails ?? {};
  return { on_failure, timeout_ms };
}
