import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Report } from '../../providers/dialect.ts';
import { NO_FIELD } from '../../providers/shared/reports.ts';
import type { ChatRequest, FunctionTool, Native, Wire } from '../../schemas/inner.ts';

/** Fields that the inner request also has in its own words; the originals are kept for upstreams of the client's own wire. */
const TRANSLATED_FIELDS: ReadonlySet<string> = new Set([
  'thinking',
  'output_config',
  'output_format',
  'tool_choice',
  'include',
  'text',
  'reasoning',
]);

/**
 * The fields that only upstreams of the client's own wire know, if this wire is another. Throws `GatewayError` 400 if a tool must be
 * called that this wire does not know.
 */
export function leftOut(request: ChatRequest, wire: Wire): Report[] {
  const { ext } = request;
  if (ext === undefined || ext.wire === wire) return [];
  if (ext.client.refusesUnknownChoice && mustCallUnknownTool(request)) {
    throw new GatewayError(
      400,
      'tool_choice: the provider of this model does not support the tool that must be called.',
    );
  }
  const betas = ext.betas === undefined ? [] : ['anthropic-beta'];
  return [...Object.keys(ext.rest), ...betas]
    .filter((field) => !TRANSLATED_FIELDS.has(field))
    .slice(0, limits.reports_max)
    .map((field) => ({ kind: 'dropped', field, reason: NO_FIELD }));
}

/** Whether the client demands a call of a tool that only its own wire knows. */
function mustCallUnknownTool({ tools, tool_choice: choice, ext }: ChatRequest): boolean {
  const functions = (tools ?? []).filter((tool): tool is FunctionTool => tool.type === 'function');
  const natives = (tools ?? []).flatMap((tool) => (tool.type === 'native' ? [(tool as Native).block['name']] : []));
  const hasServers = Array.isArray(ext?.rest['mcp_servers']) && ext.rest['mcp_servers'].length > 0;
  if (choice === 'required') return functions.length === 0 && (natives.length > 0 || hasServers);
  if (typeof choice !== 'object' || choice?.type !== 'function') return false;
  const { name } = (choice as { function: { name: string } }).function;
  return natives.includes(name) && !functions.some((tool) => tool.function.name === name);
}
