import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { Report, SpendBounds } from '../dialect.ts';

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Drops tools that call another model, whose cost has no bound; sets a bound on searches. */
function boundDeclaration(declared: JsonObject, field: string, report: Report[]): JsonObject | undefined {
  const type = String(declared['type']);
  if (type.startsWith('advisor_')) {
    const reason = 'a spend limit cannot reserve money for the output of another model';
    report.push({ kind: 'dropped', field, reason });
    return undefined;
  }
  if (!type.startsWith('web_search_') || typeof declared['max_uses'] === 'number') return declared;
  const maxUses = limits.web_searches_assumed;
  const reason = `${maxUses}: a request under a spend limit has a bound of searches`;
  report.push({ kind: 'changed', field: `${field}.max_uses`, reason });
  return { ...declared, max_uses: maxUses };
}

/** The same for blocks that add tools to a conversation (`tool_addition`, alone or in a compaction). */
function boundBlock(block: JsonObject, field: string, report: Report[]): JsonObject | undefined {
  const { tool, tool_changes: toolChanges } = block;
  if (Array.isArray(toolChanges)) {
    const kept = toolChanges.flatMap((change): JsonValue[] => {
      const bounded = isObject(change) ? boundBlock(change, field, report) : change;
      return bounded === undefined ? [] : [bounded];
    });
    return isSame(toolChanges, kept) ? block : { ...block, tool_changes: kept };
  }
  if (!isObject(tool) || !isObject(tool['definition'])) return block;
  const definition = boundDeclaration(tool['definition'], field, report);
  if (definition === undefined) return undefined;
  return definition === tool['definition'] ? block : { ...block, tool: { ...tool, definition } };
}

function boundBody(body: JsonObject, report: Report[]): JsonObject {
  const { tools } = body;
  if (!Array.isArray(tools)) return body;
  const bounded = tools.flatMap((tool, i): JsonValue[] => {
    const kept = isObject(tool) ? boundDeclaration(tool, `tools[${i}]`, report) : tool;
    return kept === undefined ? [] : [kept];
  });
  return isSame(tools, bounded) ? body : { ...body, tools: bounded };
}

function isSame<T>(before: readonly T[], after: readonly T[]): boolean {
  return before.length === after.length && before.every((one, i) => one === after[i]);
}

/** The bounds of Anthropic's tools for callers with a spend limit. */
export const spendBounds: SpendBounds = { declaration: boundDeclaration, block: boundBlock, body: boundBody };
