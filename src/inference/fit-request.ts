import type { Endpoint } from '../catalog/model.ts';
import type { Report } from '../providers/dialect.ts';
import { unsupportedParameters } from '../routing/plan.ts';
import type { ChatRequest, InnerTool } from '../schemas/inner.ts';

/** Endpoints that do not support a parameter do not get it; the rule of the contract is to ignore it, ours also to say so. */
export function fitRequest(request: ChatRequest, endpoint: Endpoint): { request: ChatRequest; report: Report[] } {
  const report: Report[] = [];
  let fitted = request;
  const own = () => {
    if (fitted === request) fitted = { ...request };
    return fitted;
  };
  for (const name of unsupportedParameters(request, endpoint)) {
    delete own()[name];
    report.push({ kind: 'dropped', field: name, reason: 'the endpoint does not support it' });
  }
  const max = endpoint.max_completion_tokens;
  for (const field of ['max_completion_tokens', 'max_tokens'] as const) {
    const wanted = request[field];
    if (max !== undefined && typeof wanted === 'number' && wanted > max) {
      own()[field] = max;
      report.push({ kind: 'clamped', field, reason: `the endpoint makes at most ${max} tokens` });
    }
  }
  dropServerTools(fitted, own, report);
  return { request: fitted, report };
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
  const choice = fitted.tool_choice;
  if (kept.length === 0 || (typeof choice === 'object' && choice !== null && dropped.has(choice.type))) {
    delete fitted.tool_choice;
  }
}
