import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';
import type { InnerTool, Native } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { SpendBounds, ToolRequest } from '../dialect.ts';

/**
 * Anthropic's predefined tools that the client runs
 * (https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview).
 */
const CLIENT_RUN = /^(?:bash|text_editor|computer|memory|browser_toolset|computer_toolset)_\d/;

/** OpenAI's predefined tools that the client runs (https://platform.openai.com/docs/guides/tools). */
const CLIENT_RUN_OF_OPENAI: ReadonlySet<string> = new Set([
  'apply_patch',
  'computer',
  'computer_use_preview',
  'local_shell',
]);

/**
 * Models that search without a tool in the request: Groq's compound systems (https://console.groq.com/docs/compound),
 * Perplexity's (https://docs.perplexity.ai/getting-started/models), OpenAI's search and research models.
 */
const SEARCHING_MODEL = /(?:^|\/)compound|sonar|search-(?:preview|api)|deep-research/;

/**
 * Fields other than `tools` that let the provider search or call tools: OpenAI's, Anthropic's, xAI's
 * (https://docs.x.ai/docs/guides/live-search) and Alibaba's (https://help.aliyun.com/zh/model-studio/web-search).
 */
const TOOL_FIELDS = ['web_search_options', 'mcp_servers', 'search_parameters', 'enable_search'];

const NO_VALUES: readonly JsonValue[] = [];

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : NO_VALUES;
}

/** Whether the client runs a tool that the provider defines. For a namespace: whether it runs all tools in it. */
function runsAtClient({ type, tools }: JsonObject): boolean {
  if (typeof type !== 'string') return false;
  if (type !== 'namespace') return CLIENT_RUN.test(type) || CLIENT_RUN_OF_OPENAI.has(type);
  const inside = Array.isArray(tools) ? tools.filter(isObject) : [];
  return inside.every((tool) => tool['type'] === 'function' || tool['type'] === 'custom' || runsAtClient(tool));
}

function runsAtProvider(tool: JsonObject): boolean {
  const { type } = tool;
  return typeof type === 'string' && type !== 'function' && type !== 'custom' && !runsAtClient(tool);
}

/** The declaration of a tool; for a native tool, its block. */
function declarationOf(tool: InnerTool): JsonObject {
  return tool.type === 'native' ? (tool as Native).block : (tool as unknown as JsonObject);
}

/**
 * The tools that the conversation of a body defines in addition to the request's: Anthropic's blocks that add a tool
 * (https://platform.claude.com/docs/en/api/beta-headers, `inline-tools`), and OpenAI's items that hold a list of tools.
 */
function toolsInConversation({ messages, input }: JsonObject): JsonObject[] {
  const defined: JsonObject[] = [];
  const turns = listOf(messages);
  for (let at = 0; at < turns.length; at += 1) {
    const message = turns[at];
    const content = isObject(message) ? message['content'] : undefined;
    if (!Array.isArray(content)) continue;
    for (const block of content) {
      if (!isObject(block)) continue;
      addDefinition(block, defined);
      for (const change of listOf(block['tool_changes'])) if (isObject(change)) addDefinition(change, defined);
    }
  }
  for (const item of listOf(input)) {
    if (!isObject(item) || (item['type'] !== 'additional_tools' && item['type'] !== 'tool_search_output')) continue;
    append(defined, listOf(item['tools']).filter(isObject));
  }
  return defined;
}

function addDefinition({ tool }: JsonObject, defined: JsonObject[]): void {
  if (isObject(tool) && isObject(tool['definition'])) defined.push(tool['definition']);
}

/** The number of tools in a body's list that the provider runs, on wires whose tools have a `type`. */
export function typedTools(tools: readonly JsonValue[]): number {
  return tools.filter((tool) => runsAtProvider((tool ?? {}) as JsonObject)).length;
}

/**
 * The most uses of each tool that the provider runs: tools of the request, of the conversation, and those that options added to the body.
 * `count` counts the tools of a body's list that the provider runs.
 */
export function toolUses(
  { tools, body, upstream_model: upstreamModel }: ToolRequest,
  count: (tools: readonly JsonValue[]) => number,
): number[] {
  const uses: number[] = [];
  for (let at = 0; at < tools.length; at += 1) {
    const tool = tools[at]!;
    if (tool.type === 'function') continue;
    const declaration = declarationOf(tool);
    if (!runsAtClient(declaration)) uses.push(usesOf(declaration));
  }
  const declaredCount = uses.length;
  const defined = toolsInConversation(body);
  for (let at = 0; at < defined.length; at += 1) if (runsAtProvider(defined[at]!)) uses.push(usesOf(defined[at]!));
  const { tools: sent } = body;
  // Google's servers accept one object where the schema has a list.
  const list = sent == null ? NO_VALUES : Array.isArray(sent) ? sent : [sent];
  const hasMore = TOOL_FIELDS.some(isInUse, body) || (list.length > 0 && count(list) > declaredCount);
  if (hasMore || SEARCHING_MODEL.test(upstreamModel)) uses.push(limits.web_searches_assumed);
  return uses;
}

function usesOf({ max_uses: maxUses }: JsonObject): number {
  return typeof maxUses === 'number' && maxUses >= 0 ? maxUses : limits.web_searches_assumed;
}

/** Whether a field of a body is there and not false. */
function isInUse(this: JsonObject, name: string): boolean {
  return (this[name] ?? false) !== false;
}

/** For wires whose tools always have a bound on their uses. */
export const noSpendBounds: SpendBounds = {
  declaration: (declared) => declared,
  block: (block) => block,
  body: (body) => body,
};
