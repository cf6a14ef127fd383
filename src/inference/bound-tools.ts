import { limits } from '../limits.ts';
import type { Report } from '../providers/dialect.ts';
import type { ChatRequest, InnerTool, Native } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';

const WIRE = 'anthropic-messages';

/**
 * Tools of Anthropic's that the client runs, though the model was made for them
 * (https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview).
 */
const CLIENT_RUN = /^(?:bash|text_editor|computer|memory|browser_toolset|computer_toolset)_\d/;

/** Whether a tool of the provider's making runs at the client all the same. */
export function runsAtClient({ type }: JsonObject): boolean {
  return typeof type === 'string' && CLIENT_RUN.test(type);
}

/** The declaration itself of a tool that only its own wire knows. */
export function declarationOf(tool: InnerTool): JsonObject {
  return tool.type === 'native' ? (tool as Native).block : (tool as unknown as JsonObject);
}

/**
 * The provider's tools as a caller with a spend limit may have them: each with a bound of its uses, and none that asks
 * another model, whose work no bound is told for. The given list where nothing is to change.
 */
export function boundTools(
  tools: NonNullable<ChatRequest['tools']>,
  report: Report[],
): NonNullable<ChatRequest['tools']> {
  const bounded = tools.flatMap((tool, i): InnerTool[] => {
    if (tool.type !== 'native' || (tool as Native).wire !== WIRE) return [tool];
    const { block } = tool as Native;
    const type = String(block['type']);
    if (type.startsWith('advisor_')) {
      report.push({
        kind: 'dropped',
        field: `tools[${i}]`,
        reason: 'a spend limit cannot hold money for what another model makes',
      });
      return [];
    }
    if (!type.startsWith('web_search_') || typeof block['max_uses'] === 'number') return [tool];
    const max_uses = limits.web_searches_assumed;
    const reason = `${max_uses}: a request that counts against a spend limit has a bound of searches`;
    report.push({ kind: 'changed', field: `tools[${i}].max_uses`, reason });
    return [{ ...(tool as Native), block: { ...block, max_uses } }];
  });
  return bounded.every((tool, i) => tool === tools[i]) && bounded.length === tools.length ? tools : bounded;
}
