import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Report } from '../../providers/dialect.ts';
import { NO_FIELD } from '../../providers/shared/reports.ts';
import type { ChatRequest, FunctionTool, Native, Wire } from '../../schemas/inner.ts';

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

/**
 * Fields that only upstreams of the client's own wire know, where this one is of another. Throws `GatewayError` 400 for a tool that
 * must be called and is not known there.
 */
export function leftOut(request: ChatRequest, wire: Wire): Report[] {
  const { ext } = request;
  if (ext === undefined || ext.wire === wire) return [];
  if (ext.client.refusesUnknownChoice && mustCallUnknown(request)) {
    throw new GatewayError(
      400,
      'tool_choice: the provider of this model does not support the tool that must be called.',
    );
  }
  const betas = ext.betas === undefined ? [] : ['anthropic-beta'];
  return [...Object.keys(ext.rest), ...betas]
    .filter((field) => !SAID_ANYWAY.has(field))
    .slice(0, limits.reports_max)
    .map((field) => ({ kind: 'dropped', field, reason: NO_FIELD }));
}

/** Whether the client demands a call of one of the tools that only its own wire knows. */
function mustCallUnknown({ tools, tool_choice: choice, ext }: ChatRequest): boolean {
  const known = (tools ?? []).filter((tool): tool is FunctionTool => tool.type === 'function');
  const own = (tools ?? []).flatMap((tool) => (tool.type === 'native' ? [(tool as Native).block['name']] : []));
  const has_servers = Array.isArray(ext?.rest['mcp_servers']) && ext.rest['mcp_servers'].length > 0;
  if (choice === 'required') return known.length === 0 && (own.length > 0 || has_servers);
  if (typeof choice !== 'object' || choice?.type !== 'function') return false;
  const { name } = (choice as { function: { name: string } }).function;
  return own.includes(name) && !known.some((tool) => tool.function.name === name);
}
