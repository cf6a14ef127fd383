import { limits } from '../limits.ts';
import type { Report } from '../providers/dialect.ts';
import { append } from '../schemas/append.ts';
import type { ChatRequest, InnerPart, InnerTool, Message, Native } from '../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../schemas/json.ts';

const WIRE = 'anthropic-messages';

/**
 * Tools of Anthropic's that the client runs, though the model was made for them
 * (https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview).
 */
const CLIENT_RUN = /^(?:bash|text_editor|computer|memory|browser_toolset|computer_toolset)_\d/;

/** The same of OpenAI's (https://platform.openai.com/docs/guides/tools). */
const CLIENT_RUN_OF_OPENAI: ReadonlySet<string> = new Set([
  'apply_patch',
  'computer',
  'computer_use_preview',
  'local_shell',
]);

/** Whether a tool of the provider's making runs at the client all the same; of a namespace, all that is in it. */
export function runsAtClient({ type, tools }: JsonObject): boolean {
  if (typeof type !== 'string') return false;
  if (type !== 'namespace') return CLIENT_RUN.test(type) || CLIENT_RUN_OF_OPENAI.has(type);
  const inside = Array.isArray(tools) ? tools.filter(isObject) : [];
  return inside.every((tool) => tool['type'] === 'function' || tool['type'] === 'custom' || runsAtClient(tool));
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
    const told = boundDeclaration(block, `tools[${i}]`, report);
    if (told === undefined) return [];
    return told === block ? [tool] : [{ ...(tool as Native), block: told }];
  });
  return bounded.every((tool, i) => tool === tools[i]) && bounded.length === tools.length ? tools : bounded;
}

/** The same for the tools of a body of that wire, which a client's own options may have put there. The given body where nothing is to change. */
export function boundBody(body: JsonObject, report: Report[]): JsonObject {
  const { tools } = body;
  if (!Array.isArray(tools)) return body;
  const bounded = tools.flatMap((tool, i): JsonValue[] => {
    const told = isObject(tool) ? boundDeclaration(tool, `tools[${i}]`, report) : tool;
    return told === undefined ? [] : [told];
  });
  return isSame(tools, bounded) ? body : { ...body, tools: bounded };
}

/** The same declaration where nothing is to change; undefined: not for such a caller. */
function boundDeclaration(declared: JsonObject, field: string, report: Report[]): JsonObject | undefined {
  const type = String(declared['type']);
  if (type.startsWith('advisor_')) {
    const reason = 'a spend limit cannot reserve money for the output of another model';
    report.push({ kind: 'dropped', field, reason });
    return undefined;
  }
  if (!type.startsWith('web_search_') || typeof declared['max_uses'] === 'number') return declared;
  const max_uses = limits.web_searches_assumed;
  const reason = `${max_uses}: a request under a spend limit has a bound of searches`;
  report.push({ kind: 'changed', field: `${field}.max_uses`, reason });
  return { ...declared, max_uses };
}

/**
 * The same for tools that a conversation brings along (`tool_addition`, alone or as a compaction remembers it): what is not for
 * such a caller is left out of it. The given list where nothing is to change.
 */
export function boundConversation(messages: readonly Message[], report: Report[]): Message[] {
  const given = messages as Message[];
  const bounded = given.map((message, i): Message => {
    const field = `messages[${i}]`;
    const { content, ext } = message;
    const parts = Array.isArray(content) ? content.flatMap((part) => boundPart(part, field, report)) : content;
    const natives = ext?.natives?.map((native) => boundNative(native, field, report) ?? { ...native, block: NOTHING });
    const is_same =
      (!Array.isArray(content) || (Array.isArray(parts) && isSame(content, parts))) &&
      (natives === undefined || isSame(ext!.natives!, natives));
    if (is_same) return message;
    return {
      ...message,
      ...(parts === undefined ? {} : { content: parts }),
      ...(natives === undefined ? {} : { ext: { ...ext!, natives } }),
    };
  });
  return isSame(given, bounded) ? given : bounded;
}

/** Holds the place of a block that is not sent: natives are found by their places. */
const NOTHING: JsonObject = { type: 'text', text: '' };

function isSame<T>(given: readonly T[], made: readonly T[]): boolean {
  return given.length === made.length && given.every((one, i) => one === made[i]);
}

function boundPart(part: InnerPart, field: string, report: Report[]): InnerPart[] {
  if (part.type !== 'native') return [part];
  const bounded = boundNative(part, field, report);
  return bounded === undefined ? [] : [bounded];
}

function boundNative(native: Native, field: string, report: Report[]): Native | undefined {
  if (native.wire !== WIRE) return native;
  const block = boundBlock(native.block, field, report);
  if (block === undefined) return undefined;
  return block === native.block ? native : { ...native, block };
}

function boundBlock(block: JsonObject, field: string, report: Report[]): JsonObject | undefined {
  const { tool, tool_changes } = block;
  if (Array.isArray(tool_changes)) {
    const kept = tool_changes.flatMap((change): JsonValue[] => {
      const bounded = isObject(change) ? boundBlock(change, field, report) : change;
      return bounded === undefined ? [] : [bounded];
    });
    return isSame(tool_changes, kept) ? block : { ...block, tool_changes: kept };
  }
  if (!isObject(tool) || !isObject(tool['definition'])) return block;
  const definition = boundDeclaration(tool['definition'], field, report);
  if (definition === undefined) return undefined;
  return definition === tool['definition'] ? block : { ...block, tool: { ...tool, definition } };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The tools that a body's conversation brings along, beside those of the request: blocks of Anthropic's that add a tool
 * (https://platform.claude.com/docs/en/api/beta-headers, `inline-tools`), and items of OpenAI's that hold a list of them.
 */
export function toolsBrought({ messages, input }: JsonObject): JsonObject[] {
  const brought: JsonObject[] = [];
  for (const message of listOf(messages)) {
    const content = isObject(message) ? message['content'] : undefined;
    if (!Array.isArray(content)) continue;
    for (const block of content) {
      if (!isObject(block)) continue;
      define(block, brought);
      for (const change of listOf(block['tool_changes'])) if (isObject(change)) define(change, brought);
    }
  }
  for (const item of listOf(input)) {
    if (!isObject(item) || (item['type'] !== 'additional_tools' && item['type'] !== 'tool_search_output')) continue;
    append(brought, listOf(item['tools']).filter(isObject));
  }
  return brought;
}

function define({ tool }: JsonObject, brought: JsonObject[]): void {
  if (isObject(tool) && isObject(tool['definition'])) brought.push(tool['definition']);
}

const NO_VALUES: readonly JsonValue[] = [];

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : NO_VALUES;
}
