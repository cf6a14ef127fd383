import { limits } from '../../limits.ts';
import type { Report } from '../../providers/dialect.ts';
import { dialectOf } from '../../providers/dialects.ts';
import type { Candidate } from '../../routing/plan.ts';
import { createAccumulator } from '../../schemas/accumulate.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import { contentsOf } from '../../schemas/contents.ts';
import {
  CHAT_WIRE,
  type ChatChunk,
  type ChatCompletion,
  type ChatRequest,
  type Message,
  type ReasoningDetail,
  type Wire,
} from '../../schemas/inner.ts';
import type { Call } from '../call.ts';
import { isMeaningful } from '../money/meter.ts';
import { isReturnedSeal, type Sealer } from './seal.ts';
import {
  isOpaque,
  type KeptTurn,
  keptTurn,
  needsKeeping,
  needsSeal,
  restoreKept,
  restoreSealed,
  sealedTurn,
  withoutBoundState,
} from './turn-state.ts';
import type { TurnVault } from './vault.ts';

/** A call whose former turns are again what they were, as far as is known. */
export interface Recalled {
  call: Call;
  report: Report[];
  /** Whose account made the last turn that has opaque state. */
  issuer: string | undefined;
}

/** A message without its seal, and the place of what had no room in it. */
interface Unsealed {
  message: Message;
  is_whole: boolean;
  rest?: string;
}

/** Follows one answer, so that its turn can be recalled. */
export interface ReasoningStateRecorder {
  /** The chunks, with the seal before the one that ends the answer. */
  add(chunks: ChatChunk[]): ChatChunk[];
  whole(completion: ChatCompletion): ChatCompletion;
}

/** Opaque reasoning state between the turns of a conversation: what clients lose of it, and where it may go. */
export interface TurnStates {
  /**
   * At once, but where the store must be asked for turns that this process does not know. `mayCarry`: whether any endpoint of the
   * call could take back what was lost; asked only of a call that has turns which may have lost something.
   */
  recall(call: Call, mayCarry: () => boolean): Recalled | Promise<Recalled>;
  /** The request without state of other accounts that this one could not read. */
  fit(request: ChatRequest, candidate: Candidate): { request: ChatRequest; report: Report[] };
  /** Undefined where the answer's wire has no state. */
  keeper(call: Call, candidate: Candidate, wire: Wire): ReasoningStateRecorder | undefined;
}

/** Whose account answers: an organization's own credential, or the gateway's at a provider. */
export function issuerOf({ own, provider }: Candidate): string {
  return own === undefined ? provider.slug : `byok ${own.id}`;
}

/** With zero data retention, or none collected, nothing of a conversation stays here. */
function mayKeep({ provider }: ChatRequest): boolean {
  return provider?.zdr !== true && provider?.data_collection !== 'deny';
}

function hidesReasoning({ reasoning, include_reasoning }: ChatRequest): boolean {
  return reasoning?.exclude === true || (include_reasoning === false && !reasoning);
}

/** Whether the client takes a seal for a turn of this wire: it is shown reasoning, and sends turns back. */
function takesSeal(request: ChatRequest, wire: Wire): boolean {
  const { ext } = request;
  if (ext === undefined || !ext.client.returnsTurns || ext.seals === 'off') return false;
  return !hidesReasoning(request) && ext.client.ownWire !== wire;
}

const textOf = (details: readonly ReasoningDetail[]) =>
  details.map((detail) => (detail.type === 'reasoning.text' ? (detail.text ?? '') : '')).join('');

function opaqueOf(detail: ReasoningDetail): string {
  if (detail.type === 'reasoning.encrypted') return detail.data;
  return detail.type === 'reasoning.text' ? (detail.signature ?? '') : '';
}

/** What a detail says, for comparing. */
function toldOf(detail: ReasoningDetail): string {
  if (detail.type === 'reasoning.text') return `${detail.text ?? ''}\n${detail.signature ?? ''}`;
  return detail.type === 'reasoning.summary' ? detail.summary : detail.data;
}

export function createTurnStates({
  sealer,
  vault,
  keeps,
}: {
  sealer: Sealer;
  vault: TurnVault;
  /** Whether turns are kept at all; seals need no keeping. */
  keeps: boolean;
}): TurnStates {
  /** The message without a seal, rebuilt by it where it holds; and where the rest is kept, when it had no room for all. */
  function unseal(
    message: Message,
    { organization_id, workspace_id }: Call['principal'],
    room: { bytes: number },
  ): Unsealed {
    const details = (message.reasoning_details ?? []).filter((detail) => !isReturnedSeal(detail));
    const bare: Message = { ...message, reasoning_details: details };
    const seals = (message.reasoning_details ?? []).filter(isReturnedSeal);
    for (const { data } of seals.reverse()) {
      const turn = sealer.unseal(data, organization_id, room);
      const restored = turn && restoreSealed(bare, turn);
      if (restored === undefined) continue;
      if (turn?.g === undefined) return restored;
      return { ...restored, rest: vault.placeOfGeneration(workspace_id, turn.g) };
    }
    return { message: bare, is_whole: false };
  }

  /** The messages with a seal, by their places; the newest first, where there is not room for all. */
  function unsealAll(messages: readonly Message[], principal: Call['principal']): Map<number, Unsealed> {
    const unsealed = new Map<number, Unsealed>();
    const room = { bytes: limits.seals_unpacked_bytes_max };
    for (let at = messages.length - 1; at >= 0; at -= 1) {
      const message = messages[at]!;
      if (message.role !== 'assistant' || !message.reasoning_details?.some(isReturnedSeal)) continue;
      unsealed.set(at, unseal(message, principal, room));
    }
    return unsealed;
  }

  /** What the vault knows of a turn whose details the client did send: its issuer, and the details where they were merged. */
  function compare(message: Message, text: string, own: Wire | undefined): Message {
    const turn = JSON.parse(text) as KeptTurn;
    // A client of the turn's own wire sends what it means to: hints for the cache, or less than there was.
    if (turn.w === own) return message;
    const details = message.reasoning_details ?? [];
    const restored = restoreKept(message, turn);
    if (restored === undefined) return message;
    // Details that are neither the turn's nor a client's mixture of them are the client's business.
    const made = new Set(turn.e.map(toldOf));
    const is_mixed = textOf(details) === textOf(turn.e) || details.every((one) => made.has(toldOf(one)));
    return is_mixed ? restored : message;
  }

  /** The message with its issuer, where this process made its opaque state. */
  function attributed(message: Message): Message {
    if (message.role !== 'assistant' || message.ext?.issuer !== undefined) return message;
    for (const detail of message.reasoning_details ?? []) {
      const issuer = isOpaque(detail) ? vault.issuerOf(opaqueOf(detail)) : undefined;
      if (issuer !== undefined) return { ...message, ext: { wire: CHAT_WIRE, rest: {}, ...message.ext, issuer } };
    }
    return message;
  }

  function finish(call: Call, recalled: Message[], report: Report[]): Recalled {
    const messages = recalled.map(attributed);
    const changed = messages.some((message, at) => message !== call.request.messages[at]);
    const last = messages.findLast(
      ({ ext, reasoning_details = [] }) => ext?.issuer && reasoning_details.some(isOpaque),
    );
    return {
      call: changed ? { ...call, request: { ...call.request, messages } } : call,
      report,
      issuer: last?.ext?.issuer,
    };
  }

  function remember(
    { request, principal, generation_id }: Call,
    message: Message,
    { wire, issuer, is_sealed }: { wire: Wire; issuer: string; is_sealed: boolean },
  ): void {
    if (!keeps || !mayKeep(request)) return;
    for (const detail of message.reasoning_details ?? []) {
      if (isOpaque(detail)) vault.keepIssuer(opaqueOf(detail), issuer);
    }
    const { workspace_id } = principal;
    const kept = needsKeeping(message) ? JSON.stringify(keptTurn(message, wire, issuer)) : undefined;
    const place = vault.placeOf(workspace_id, message, request.messages.at(-1));
    if (place !== undefined) vault.keep(place, kept);
    if (!is_sealed) vault.keep(vault.placeOfGeneration(workspace_id, generation_id), kept);
  }

  return {
    recall(call, mayCarry) {
      const { request, principal } = call;
      // What was said in texts alone has no state, and cannot have lost any.
      if (!contentsOf(request).is_stateful) return { call, report: [], issuer: undefined };
      const may_carry = keeps && mayCarry();
      // A client that was not shown its turn's reasoning did not choose to leave it out.
      const own = request.ext && !hidesReasoning(request) ? request.ext.client.ownWire : undefined;
      const report: Report[] = [];
      const lost = new Map<string, number>();
      const sealed = unsealAll(request.messages, principal);
      /** Some clients write each block of a turn as a message of its own: whether one before had its reasoning. */
      let was_told = false;
      const messages = request.messages.map((given, at): Message => {
        const is_told = was_told;
        const { reasoning_details: details } = given;
        was_told = given.role === 'assistant' && (is_told || Boolean(details?.length));
        if (given.role !== 'assistant') return given;
        const has_seal = sealed.has(at);
        const unsealed = sealed.get(at) ?? { message: given, is_whole: false };
        if (unsealed.rest !== undefined && keeps) {
          lost.set(unsealed.rest, at);
          return unsealed.message;
        }
        if (unsealed.is_whole || !may_carry) return unsealed.message;
        const place = vault.placeOf(principal.workspace_id, given, request.messages[at - 1]);
        if (place === undefined) return unsealed.message;
        if (details == null) {
          if (!is_told) lost.set(place, at);
          return given;
        }
        const known = details.length === 0 ? undefined : vault.remembered(place);
        return known === undefined
          ? unsealed.message
          : compare(
              has_seal ? { ...given, reasoning_details: details.filter((one) => !isReturnedSeal(one)) } : given,
              known,
              own,
            );
      });
      if (lost.size === 0) return finish(call, messages, report);
      const restore = (found: ReadonlyMap<string, string>): Recalled => {
        for (const [place, text] of found) {
          const at = lost.get(place)!;
          const turn = JSON.parse(text) as KeptTurn;
          const restored = turn.w === own ? undefined : restoreKept(messages[at]!, turn);
          if (restored === undefined) continue;
          messages[at] = restored;
          const field = `messages[${at}].reasoning_details`;
          report.push({
            kind: 'changed',
            field,
            reason: 'restored: the client did not send back all parts of its turn',
          });
        }
        return finish(call, messages, report);
      };
      const found = vault.recall([...lost.keys()].slice(-limits.turn_lookups_max), call.store_wait);
      return found instanceof Promise ? found.then(restore) : restore(found);
    },

    fit(request, candidate) {
      if (!contentsOf(request).is_issued) return { request, report: [] };
      const issuer = issuerOf(candidate);
      const report: Report[] = [];
      const messages = request.messages.map((message, at) => {
        if (message.ext?.issuer === undefined || message.ext.issuer === issuer) return message;
        const bare = withoutBoundState(message);
        if (bare !== message) {
          const reason = 'opaque reasoning of another account, which this one cannot read';
          report.push({ kind: 'dropped', field: `messages[${at}].reasoning_details`, reason });
        }
        return bare;
      });
      return report.length === 0 ? { request, report } : { request: { ...request, messages }, report };
    },

    keeper(call, candidate, wire) {
      // Which of several answers the client goes on with is not known.
      const { carriesState } = dialectOf(wire).facts;
      if (!carriesState(candidate.endpoint.quirks) || choicesOf(call.request) > 1) return undefined;
      const issuer = issuerOf(candidate);
      const { generation_id, principal } = call;
      const owner = { organization_id: principal.organization_id, generation_id };
      /** Remembers the turn, and gives its seal where it needs one. */
      const close = (message: Message): ReasoningDetail | undefined => {
        const wants_seal = takesSeal(call.request, wire) && needsSeal(message);
        const seal = wants_seal ? sealer.seal(sealedTurn(message, wire, issuer), owner) : undefined;
        remember(call, message, { wire, issuer, is_sealed: seal?.is_whole !== false });
        return seal && { ...seal.detail, index: message.reasoning_details?.length ?? 0 };
      };
      const accumulator = createAccumulator();
      return {
        add(chunks) {
          const out: ChatChunk[] = [];
          for (const chunk of chunks) {
            accumulator.add(chunk);
            const ends = chunk.finish_reason != null && chunk.finish_reason !== 'error';
            const seal = ends ? close(accumulator.result(0).choices[0].message) : undefined;
            if (seal === undefined) out.push(chunk);
            else if (!isMeaningful(chunk.delta)) out.push({ delta: { reasoning_details: [seal] } }, chunk);
            else {
              const { finish_reason, native_finish_reason = null, ...content } = chunk;
              out.push(
                content,
                { delta: { reasoning_details: [seal] } },
                { delta: {}, finish_reason, native_finish_reason },
              );
            }
          }
          return out;
        },
        whole(completion) {
          const [choice] = completion.choices;
          const { message, finish_reason } = choice;
          const seal = finish_reason === 'error' ? undefined : close(message);
          if (seal === undefined) return completion;
          const sealed = { ...message, reasoning_details: [...(message.reasoning_details ?? []), seal] };
          return { ...completion, choices: [{ ...choice, message: sealed }] };
        },
      };
    },
  };
}
