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
  /** The bound if the request sets none. Undefined for the model's maximum. */
  default_tokens: number | undefined;
  /** The output that the budgets pay for, if that is less than the bound. */
  paid_tokens?: number | undefined;
}

/** Why a service tier is dropped. */
export const UNPRICED_TIER = 'the endpoint has no price for this tier';

/** Parameters by which hosts of open models make and bill several answers, and return one. */
const SEVERAL_ANSWERS = ['best_of', 'num_generations', 'num_return_sequences'] as const;

/** The fields about tools. */
const TOOL_FIELDS: ReadonlySet<string> = new Set(['tools', 'tool_choice', 'parallel_tool_calls']);

/** Why a default output bound is lowered. */
const SHARE = `the tokens that ${limits.default_hold_share * 100} % of the rest of the spend limit pays for`;

/** The fields of an output bound. */
export const BOUNDS = ['max_completion_tokens', 'max_tokens'] as const;

/** A request fitted to one endpoint. */
export interface FittedRequest {
  request: ChatRequest;
  report: Report[];
  /** Neither the client nor the operator set the output bound: a share of the remaining limit must pay for it. */
  is_default_bound?: true;
}

/** Removes parameters that the endpoint does not support, and reports that: the contract has them ignored silently. */
export function fitRequest(request: ChatRequest, endpoint: Endpoint, spend?: SpendBound): FittedRequest {
  const report: Report[] = [];
  let fitted = request;
  const own = () => {
    if (fitted === request) fitted = { ...request };
    return fitted;
  };
  for (const name of unsupportedParameters(request, endpoint)) {
    // Without native support, tools are described in the prompt.
    if (TOOL_FIELDS.has(name)) continue;
    delete own()[name];
    report.push({ kind: 'dropped', field: name, reason: 'the endpoint does not support it' });
  }
  for (const name of SEVERAL_ANSWERS) {
    if (request[name] === undefined || request[name] === null) continue;
    delete own()[name];
    report.push({ kind: 'dropped', field: name, reason: 'the endpoint returns one answer per request' });
  }
  const max = endpoint.max_completion_tokens;
  for (const field of BOUNDS) {
    const requested = request[field];
    if (max !== undefined && typeof requested === 'number' && requested > max) {
      own()[field] = max;
      report.push({ kind: 'clamped', field, reason: `the endpoint produces at most ${max} tokens` });
    }
  }
  // As in the public service, an endpoint without the tier serves the request in its default tier.
  if (typeof request.service_tier === 'string' && !offersTier(endpoint, request.service_tier)) {
    delete own().service_tier;
    report.push({ kind: 'dropped', field: 'service_tier', reason: UNPRICED_TIER });
  }
  let isDefaultBound = false;
  if (spend !== undefined) {
    isDefaultBound = boundOutput(fitted, own, report, { endpoint, ...spend });
    const tools = fitted.tools && boundTools(fitted.tools, report);
    if (tools !== fitted.tools) own().tools = tools;
    const messages = contentsOf(fitted).has_natives ? boundConversation(fitted.messages, report) : fitted.messages;
    if (messages !== fitted.messages) own().messages = messages;
  }
  if (fitted.tools != null && !fitted.tools.every(isForUpstream)) dropServerTools(fitted.tools, own(), report);
  return isDefaultBound ? { request: fitted, report, is_default_bound: isDefaultBound } : { request: fitted, report };
}

/** Sets the output bound, which a request under a budget always has: money is held for it. Returns whether it is a default bound. */
function boundOutput(
  request: ChatRequest,
  own: () => ChatRequest,
  report: Report[],
  { endpoint, default_tokens, paid_tokens }: SpendBound & { endpoint: Endpoint },
): boolean {
  const { max_completion_tokens: newer, max_tokens: older } = request;
  const requested = newer ?? older ?? undefined;
  const configured = default_tokens && Math.min(default_tokens, endpoint.max_completion_tokens ?? default_tokens);
  const usual = requested === undefined && configured === undefined ? defaultBound(request, endpoint) : undefined;
  const bound = requested ?? configured ?? usual?.tokens ?? 0;
  const sent = Math.min(bound, paid_tokens ?? bound);
  if (sent === requested) return false;
  const fitted = own();
  if (newer != null) fitted.max_completion_tokens = sent;
  if (older != null || newer == null) fitted.max_tokens = sent;
  const field = newer == null ? 'max_tokens' : 'max_completion_tokens';
  if (requested !== undefined || (usual === undefined && sent < bound)) {
    report.push({ kind: 'clamped', field, reason: `the spend limit pays for ${sent} output tokens` });
  } else {
    const source = sent < bound ? SHARE : (usual?.source ?? 'ledger.default_output_tokens');
    const why = 'a request under a spend limit has an output bound, and this one has no max_tokens';
    report.push({ kind: 'changed', field, reason: `${sent}, ${source}: ${why}` });
  }
  return usual !== undefined;
}

/** Whether a tool is a function or native: for native tools, the dialect knows which ones its upstream runs. */
function isForUpstream(tool: InnerTool): boolean {
  return tool.type === 'function' || tool.type === 'native';
}

/** Drops tools that the gateway itself would have to run. */
function dropServerTools(tools: readonly InnerTool[], fitted: ChatRequest, report: Report[]): void {
  const remaining = tools.filter(isForUpstream);
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
  fitted.tools = remaining.length > 0 ? remaining : null;
  const { tool_choice: choice } = fitted;
  if (remaining.length > 0 && !(typeof choice === 'object' && choice !== null && dropped.has(choice.type))) return;
  delete fitted.tool_choice;
  if (choice != null && choice !== 'auto' && choice !== 'none') {
    report.push({
      kind: 'dropped',
      field: 'tool_choice',
      reason: 'the tools that it forces a call of are not run here',
    });
  }
}
