import type { Report } from '../../providers/dialect.ts';
import { dialectOf } from '../../providers/dialects.ts';
import type { ChatRequest, InnerPart, InnerTool, Message, Native } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

/**
 * The tools of a caller with a spend limit: native tools as their wire bounds them (`SpendBounds`). The same list if nothing changes.
 */
export function boundTools(
  tools: NonNullable<ChatRequest['tools']>,
  report: Report[],
): NonNullable<ChatRequest['tools']> {
  const bounded = tools.flatMap((tool, i): InnerTool[] => {
    if (tool.type !== 'native') return [tool];
    const { wire, block } = tool as Native;
    const kept = dialectOf(wire).worstCase.spendBounds.declaration(block, `tools[${i}]`, report);
    if (kept === undefined) return [];
    return kept === block ? [tool] : [{ ...(tool as Native), block: kept }];
  });
  return isSame(tools, bounded) ? tools : bounded;
}

/**
 * The same for tools that blocks of the conversation add: what such a caller cannot have is left out of them. The same list if nothing
 * changes.
 */
export function boundConversation(messages: Message[], report: Report[]): Message[] {
  const bounded = messages.map((message, i): Message => {
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
  return isSame(messages, bounded) ? messages : bounded;
}

/** Holds the place of a block that is not sent: the order of blocks refers to natives by their places. */
const NOTHING: JsonObject = { type: 'text', text: '' };

function isSame<T>(before: readonly T[], after: readonly T[]): boolean {
  return before.length === after.length && before.every((one, i) => one === after[i]);
}

function boundPart(part: InnerPart, field: string, report: Report[]): InnerPart[] {
  if (part.type !== 'native') return [part];
  const bounded = boundNative(part, field, report);
  return bounded === undefined ? [] : [bounded];
}

function boundNative(native: Native, field: string, report: Report[]): Native | undefined {
  const block = dialectOf(native.wire).worstCase.spendBounds.block(native.block, field, report);
  if (block === undefined) return undefined;
  return block === native.block ? native : { ...native, block };
}
