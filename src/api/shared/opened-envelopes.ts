import type { Envelope } from '../../inference/reasoning/envelope.ts';
import type { Message, ReasoningDetail } from '../../schemas/inner.ts';

/**
 * Replaces the thinking blocks of an assistant message that carry reasoning of another wire in an envelope by that reasoning. Envelopes
 * that do not verify are dropped.
 */
export function openEnvelopes(message: Message, envelope: Envelope): Message {
  const details = message.reasoning_details;
  if (details == null) return message;
  const opened = details.map((detail) => open(detail, envelope));
  if (opened.every((details) => details === undefined)) return message;

  const made: ReasoningDetail[] = [];
  /** The index at which the replacement of each detail begins, and the end of all. */
  const starts: number[] = [];
  for (const [i, detail] of details.entries()) {
    starts.push(made.length);
    for (const carried of opened[i] ?? [detail]) made.push({ ...carried, index: made.length });
  }
  starts.push(made.length);
  const changed: Message = { ...message, reasoning_details: made };
  const order = message.ext?.order?.flatMap((slot) => {
    if (slot.kind !== 'reasoning') return [slot];
    const at = starts[slot.at] ?? made.length;
    const span = (starts[slot.at + (slot.span ?? 1)] ?? made.length) - at;
    const { span: _, ...rest } = slot;
    return span === 0 ? [] : [{ ...rest, at, ...(span === 1 ? {} : { span }) }];
  });
  if (message.ext !== undefined && order !== undefined) changed.ext = { ...message.ext, order };
  return changed;
}

function bringsDetails({ role, reasoning_details }: Message): boolean {
  return role === 'assistant' && reasoning_details != null;
}

/**
 * Opens envelopes in messages of the chat API. Its clients are not sent any, but may send those of another client API. What does not verify
 * is left, since it may belong to a provider, which may be a gateway itself, or be a seal.
 */
export function openBroughtEnvelopes(messages: Message[], envelope: () => Envelope): Message[] {
  if (!messages.some(bringsDetails)) return messages;
  const { wrap, unwrap } = envelope();
  const brought: Envelope = {
    wrap,
    unwrap(text) {
      const carried = unwrap(text);
      return carried?.length ? carried : undefined;
    },
  };
  return messages.map((message) => (bringsDetails(message) ? openEnvelopes(message, brought) : message));
}

/** The reasoning in the envelope of a detail; undefined if it has no envelope. */
function open(detail: ReasoningDetail, envelope: Envelope): ReasoningDetail[] | undefined {
  const carrier =
    detail.type === 'reasoning.text'
      ? detail.signature
      : detail.type === 'reasoning.encrypted'
        ? detail.data
        : undefined;
  const carried = carrier == null ? undefined : envelope.unwrap(carrier);
  if (carried === undefined) return undefined;
  return detail.type === 'reasoning.text' ? withText(carried, detail.text ?? '') : carried;
}

/** Restores the text of a single detail, which is in the block itself and not in its envelope. */
function withText(carried: readonly ReasoningDetail[], text: string): ReasoningDetail[] {
  if (text === '' || carried.filter(({ type }) => type !== 'reasoning.encrypted').length !== 1) return [...carried];
  return carried.map((detail): ReasoningDetail => {
    if (detail.type === 'reasoning.summary' && detail.summary === '') return { ...detail, summary: text };
    if (detail.type === 'reasoning.text' && !detail.text) return { ...detail, text };
    return detail;
  });
}
