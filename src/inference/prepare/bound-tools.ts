import type { Report } from '../../providers/dialect.ts';
import { dialectOf } from '../../providers/dialects.ts';
import type { ChatRequest, InnerPart, InnerTool, Message, Native } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

/** Bounds the native tools of a caller with a spend limit (`SpendBounds` of their wire). The same list if nothing changes. */
export function boundTools(
  tools: NonNullable<ChatRequest['tools']>,
  report: Report[],
): NonNullable<ChatRequest['tools']> {
  const bounded = tools.flatMap((tool, i): InnerTool[] => {
    if (tool.type !== 'native') return [tool];
    const { wire, block } = tool as Native;
    const bound = dialectOf(wire).worstCase.spendBounds.declaration(block, `tools[${i}]`, report);
    if (bound === undefined) return [];
    return bound === block ? [tool] : [{ ...(tool as Native), block: bound }];
  });
  return isSame(tools, bounded) ? tools : bounded;
}

/** The same for blocks of the conversation that add tools: removes those that such a caller cannot have. */
export function boundConversation(messages: Message[], report: Report[]): Message[] {
  const bounded = messages.map((message, i): Message => {
    const field = `messages[${i}]`;
    const { content, ext } = message;
    const parts = Array.isArray(content) ? content.flatMap((part) => boundPart(part, field, report)) : content;
    const natives = ext?.natives?.map((native) => boundNative(native, field, report) ?? { ...native, block: NOTHING });
    const isUnchanged =
      (!Array.isArray(content) || (Array.isArray(parts) && isSame(content, parts))) &&
      (natives === undefined || isSame(ext!.natives!, natives));
    if (isUnchanged) return message;
    return {
      ...message,
      ...(parts === undefined ? {} : { content: parts }),
      ...(natives === undefined ? {} : { ext: { ...ext!, natives } }),
    };
  });
  return isSame(messages, bounded) ? messages : bounded;
}

/** Replaces a removed block: the order of blocks refers to natives by their index. */
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
