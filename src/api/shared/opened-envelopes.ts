import type { Envelope } from '../../inference/reasoning/envelope.ts';
import type { Message, ReasoningDetail } from '../../schemas/inner.ts';

/**
 * An assistant's message whose thinking blocks carried reasoning of another wire, with that reasoning in their place. What
 * does not verify is left out.
 */
export function openEnvelopes(message: Message, envelope: Envelope): Message {
  const details = message.reasoning_details;
  if (details == null) return message;
  const opened = details.map((detail) => open(detail, envelope));
  if (opened.every((one) => one === undefined)) return message;

  const made: ReasoningDetail[] = [];
  /** Where each detail's own begin, and behind them where all end. */
  const starts: number[] = [];
  for (const [i, detail] of details.entries()) {
    starts.push(made.length);
    for (const one of opened[i] ?? [detail]) made.push({ ...one, index: made.length });
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
 * The same of the messages of the chat API, whose clients are shown no envelopes: only those that a client brought from another
 * API are opened. What does not verify is a provider's, which may be a gateway itself, or a seal.
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

/** What a detail carried; undefined where it is the wire's own. */
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

/** What the block itself shows is not in its envelope, where it is one detail's: that one is without its text there. */
function withText(carried: readonly ReasoningDetail[], text: string): ReasoningDetail[] {
  if (text === '' || carried.filter(({ type }) => type !== 'reasoning.encrypted').length !== 1) return [...carried];
  return carried.map((detail): ReasoningDetail => {
    if (detail.type === 'reasoning.summary' && detail.summary === '') return { ...detail, summary: text };
    if (detail.type === 'reasoning.text' && !detail.text) return { ...detail, text };
    return detail;
  });
}
