import { limits } from '../limits.ts';
import type { Report } from '../providers/dialect.ts';
import type { ChatRequest, Wire } from '../schemas/inner.ts';

/** Kept as they were said for upstreams of the client's own wire; the request says the same in the inner language's words. */
const SAID_ANYWAY: ReadonlySet<string> = new Set([
  'thinking',
  'output_config',
  'output_format',
  'tool_choice',
  'include',
  'text',
  'reasoning',
]);

/** Fields that only upstreams of the client's own wire know, where this one is of another. */
export function leftOut({ ext }: ChatRequest, wire: Wire): Report[] {
  if (ext === undefined || ext.wire === wire) return [];
  const reason = 'this upstream has no such parameter';
  const betas = ext.betas === undefined ? [] : ['anthropic-beta'];
  return [...Object.keys(ext.rest), ...betas]
    .filter((field) => !SAID_ANYWAY.has(field))
    .slice(0, limits.reports_max)
    .map((field) => ({ kind: 'dropped', field, reason }));
}
