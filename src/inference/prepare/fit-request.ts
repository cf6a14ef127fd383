import type { Endpoint } from '../../catalog/model.ts';
import { offersTier } from '../../catalog/price-list.ts';
import { limits } from '../../limits.ts';
import type { Report } from '../../providers/dialect.ts';
import { unsupportedParameters } from '../../routing/plan.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, InnerTool } from '../../schemas/inner.ts';
import { defaultBound } from '../plan/default-bound.ts';
import { boundConversation, boundTools } from './bound-tools.ts';

/** The output bound of a caller with a spend limit. */
export interface SpendBound {
  /** Where the request names none; undefined: the model's own. */
  default_tokens: number | undefined;
  /** What its budgets pay for, where that is less than was asked. */
  paid_tokens?: number | undefined;
}

/** Why a service tier is not asked for. */
export const UNPRICED_TIER = 'the endpoint has no price for this tier';

/** Names under which hosts of open models make, and bill, several answers of which one is given. */
const SEVERAL = ['best_of', 'num_generations', 'num_return_sequences'] as const;

/** The fields that say which tools may be called, and how. */
const OF_TOOLS: ReadonlySet<string> = new Set(['tools', 'tool_choice', 'parallel_tool_calls']);
/** Why an output bound is below the default that it would have. */
const SHARE = `the tokens that ${limits.default_hold_share * 100} % of the rest of the spend limit pays for`;

/** The fields of an output bound. */
export const BOUNDS = ['max_completion_tokens', 'max_tokens'] as const;

/** A request as one endpoint gets it. */
export interface FittedRequest {
  request: ChatRequest;
  report: Report[];
  /** Its output bound is neither the client's nor the operator's, so that a share of what is left must pay for it. */
  is_default_bound?: true;
}

/** Endpoints that do not support a parameter do not get it; the rule of the contract is to ignore it, ours also to say so. */
export function fitRequest(request: ChatRequest, endpoint: Endpoint, spend?: SpendBound): FittedRequest {
  const report: Report[] = [];
  let fitted = request;
  const own = () => {
    if (fitted === request) fitted = { ...request };
    return fitted;
  };
  for (const name of unsupportedParameters(request, endpoint)) {
    // Without native tools they are described in the prompt.
    if (OF_TOOLS.has(name)) continue;
    delete own()[name];
    report.push({ kind: 'dropped', field: name, reason: 'the endpoint does not support it' });
  }
  for (const name of SEVERAL) {
    if (request[name] === undefined || request[name] === null) continue;
    delete own()[name];
    report.push({ kind: 'dropped', field: name, reason: 'the endpoint returns one answer per request' });
  }
  const max = endpoint.max_completion_tokens;
  for (const field of BOUNDS) {
    const wanted = request[field];
    if (max !== undefined && typeof wanted === 'number' && wanted > max) {
      own()[field] = max;
      report.push({ kind: 'clamped', field, reason: `the endpoint produces at most ${max} tokens` });
    }
  }
  // The public service, too, goes on without the tier at an endpoint that does not have it.
  if (typeof request.service_tier === 'string' && !offersTier(endpoint, request.service_tier)) {
    delete own().service_tier;
    report.push({ kind: 'dropped', field: 'service_tier', reason: UNPRICED_TIER });
  }
  let is_default_bound = false;
  if (spend !== undefined) {
    is_default_bound = boundOutput(fitted, own, report, { endpoint, ...spend });
    const tools = fitted.tools && boundTools(fitted.tools, report);
    if (tools !== fitted.tools) own().tools = tools;
    const messages = contentsOf(fitted).has_natives ? boundConversation(fitted.messages, report) : fitted.messages;
    if (messages !== fitted.messages) own().messages = messages;
  }
  dropServerTools(fitted, own, report);
  return is_default_bound ? { request: fitted, report, is_default_bound } : { request: fitted, report };
}

/**
 * Money is held for an output bound, so that a request which is paid from a budget always has one. Returns whether it is the
 * model's own.
 */
function boundOutput(
  request: ChatRequest,
  own: () => ChatRequest,
  report: Report[],
  { endpoint, default_tokens, paid_tokens }: SpendBound & { endpoint: Endpoint },
): boolean {
  const { max_completion_tokens: newer, max_tokens: older } = request;
  const wanted = newer ?? older ?? undefined;
  const set = default_tokens && Math.min(default_tokens, endpoint.max_completion_tokens ?? default_tokens);
  const usual = wanted === undefined && set === undefined ? defaultBound(request, endpoint) : undefined;
  const bound = wanted ?? set ?? usual?.tokens ?? 0;
  const sent = Math.min(bound, paid_tokens ?? bound);
  if (sent === wanted) return false;
  const fitted = own();
  if (newer != null) fitted.max_completion_tokens = sent;
  if (older != null || newer == null) fitted.max_tokens = sent;
  const field = newer == null ? 'max_tokens' : 'max_completion_tokens';
  if (wanted !== undefined || (usual === undefined && sent < bound)) {
    report.push({ kind: 'clamped', field, reason: `the spend limit pays for ${sent} output tokens` });
  } else {
    const source = sent < bound ? SHARE : (usual?.source ?? 'ledger.default_output_tokens');
    const why = 'a request under a spend limit has an output bound, and this one has no max_tokens';
    report.push({ kind: 'changed', field, reason: `${sent}, ${source}: ${why}` });
  }
  return usual !== undefined;
}

/** Functions, and tools of a wire of its own: the dialect knows which of those its upstream runs. */
function isForUpstream(tool: InnerTool): boolean {
  return tool.type === 'function' || tool.type === 'native';
}

/** Tools that the gateway itself would have to run are not offered to the model. */
function dropServerTools(request: ChatRequest, own: () => ChatRequest, report: Report[]): void {
  const { tools } = request;
  if (!tools || tools.every(isForUpstream)) return;
  const kept = tools.filter(isForUpstream);
  const dropped = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    if (isForUpstream(tool)) continue;
    dropped.add(tool.type);
    report.push({
      kind: 'dropped',
      field: `tools[${index}]`,
      reason: `server tools such as ${tool.type} are not run here`,
    });
  }
  const fitted = own();
  fitted.tools = kept.length > 0 ? kept : null;
  const { tool_choice: choice } = fitted;
  if (kept.length > 0 && !(typeof choice === 'object' && choice !== null && dropped.has(choice.type))) return;
  delete fitted.tool_choice;
  if (choice != null && choice !== 'auto' && choice !== 'none') {
    report.push({
      kind: 'dropped',
      field: 'tool_choice',
      reason: 'the tools that it forces a call of are not run here',
    });
  }
}
