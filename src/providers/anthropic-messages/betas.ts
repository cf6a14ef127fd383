import { limits } from '../../limits.ts';
import type { RequestExt } from '../../schemas/inner.ts';
import type { Encoding } from './to-wire.ts';

/**
 * Features that a client may request in the header `anthropic-beta`: those that concern one answer and its contents. Excluded are
 * features with their own prices (fast mode, longer contexts), other models (fallbacks), and what outlives the request (batches, threads,
 * agents). As of November 2026: https://platform.claude.com/docs/en/api/beta-headers and the types of the official SDK. The date is
 * omitted, so that a newer version of a feature needs no release.
 */
const FEATURES: ReadonlySet<string> = new Set([
  'advisor-tool',
  'cache-diagnosis',
  'claude-code',
  'code-execution',
  'compact',
  'computer-use',
  'context-management',
  'dev-full-thinking',
  'effort',
  'extended-cache-ttl',
  'files-api',
  'fine-grained-tool-streaming',
  'inline-tools',
  'interleaved-thinking',
  'mcp-client',
  'mid-conversation-output-config',
  'mid-conversation-system-clear-at',
  'mid-conversation-tool-changes',
  'model-context-window-exceeded',
  'output-128k',
  'output-300k',
  'pdfs',
  'prompt-caching',
  'prompt-caching-scope',
  'redact-thinking',
  'skills',
  'structured-outputs',
  'task-budgets',
  'thinking-binding-controls',
  'thinking-display-updates',
  'thinking-token-count',
  'token-counting',
  'token-efficient-tools',
  'tool-examples',
  'tool-search-tool',
  'advanced-tool-use',
  'user-profiles',
  'web-fetch',
  'web-search',
]);

const DATED = /^([a-z0-9][a-z0-9-]*?)-\d{4}-?\d{2}-?\d{2}$/;

/** The value of the beta header: the allowed features of those that the client requested; empty if none. */
export function allowedBetas(ext: RequestExt | undefined, { quirks, addReport: report }: Encoding): string {
  const allowed = (ext?.betas ?? []).filter((beta) => {
    const feature = DATED.exec(beta)?.[1];
    if (feature !== undefined && (FEATURES.has(feature) || quirks.betas?.includes(feature))) return true;
    if (quirks.betas?.includes(beta)) return true;
    report('dropped', 'anthropic-beta', `${beta.slice(0, limits.error_field_chars_max)} is not allowed`);
    return false;
  });
  return allowed.join(',');
}
