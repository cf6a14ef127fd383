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
import { isLongJson, JSON_CHARS_FACTOR } from '../../schemas/json-pieces.ts';
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

/** The most bytes of all unpacked seals of one request. Seals compress so well that a small request could unpack to a very large one. */
export const SEALS_UNPACKED_BYTES_MAX = 32 * 1024 * 1024;
/** The most turns of one request that are looked up in the store: the last ones. */
const TURN_LOOKUPS_MAX = 128;

/** A call with the reasoning state of its earlier turns restored, as far as it is known. */
export interface RestoredCall {
  call: Call;
  report: Report[];
  /** The account that made the last turn with opaque state. */
  issuer: string | undefined;
}

/** A message without its seal. `rest`: the place of the turn if the seal does not have all of it. */
interface Unsealed {
  message: Message;
  is_whole: boolean;
  rest?: string;
}

/** Records the reasoning state of one answer, so that its turn can be restored later. */
export interface ReasoningStateRecorder {
  /** Returns the chunks, with the seal before the chunk that ends the answer. */
  add(chunks: ChatChunk[]): ChatChunk[];
  whole(completion: ChatCompletion): ChatCompletion;
}

/** The opaque reasoning state of conversations: restores what clients lose, and removes what an endpoint cannot read. */
export interface TurnStates {
  /**
   * Restores the state of earlier turns. Synchronous unless the store must be read. `mayCarry`: whether any endpoint of the call
   * accepts reasoning state; called only if turns may have lost some.
   */
  restore(call: Call, mayCarry: () => boolean): RestoredCall | Promise<RestoredCall>;
  /** Creates the recorder of one answer. Undefined if the wire of the answer has no state. */
  recorder(call: Call, candidate: Candidate, wire: Wire): ReasoningStateRecorder | undefined;
}

/** The account of an endpoint: an organization's own credential, or the gateway's at the provider. */
export function issuerOf({ own, provider }: Candidate): string {
  return own === undefined ? provider.slug : `byok ${own.id}`;
}

/** The request without the state of other accounts, which the candidate's account cannot read. */
export function withOwnState(request: ChatRequest, candidate: Candidate): { request: ChatRequest; report: Report[] } {
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
}

/** Whether turns may be kept: not with zero data retention, nor if data collection is denied. */
function mayKeep({ provider }: ChatRequest): boolean {
  return provider?.zdr !== true && provider?.data_collection !== 'deny';
}

function hidesReasoning({ reasoning, include_reasoning }: ChatRequest): boolean {
  return reasoning?.exclude === true || (include_reasoning === false && !reasoning);
}

/** Whether the client accepts a seal for a turn of this wire: it sees reasoning and sends turns back. */
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

/** The content of a detail, for comparison. */
function contentOf(detail: ReasoningDetail): string {
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
  /** Whether turns are kept at all. Seals work without that. */
  keeps: boolean;
}): TurnStates {
  /** Removes the seals of a message and restores it from a valid one. */
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

  /** The messages with a seal, by index. The newest ones go first, in case not all can be unpacked. */
  function unsealAll(messages: readonly Message[], principal: Call['principal']): Map<number, Unsealed> {
    const unsealed = new Map<number, Unsealed>();
    const room = { bytes: SEALS_UNPACKED_BYTES_MAX };
    for (let at = messages.length - 1; at >= 0; at -= 1) {
      const message = messages[at]!;
      if (message.role !== 'assistant' || !message.reasoning_details?.some(isReturnedSeal)) continue;
      unsealed.set(at, unseal(message, principal, room));
    }
    return unsealed;
  }

  /** Restores the issuer of a turn whose details the client sent, and the details if the client merged them. */
  function compare(message: Message, text: string, own: Wire | undefined): Message {
    const turn = JSON.parse(text) as KeptTurn;
    // A client of the turn's own wire changes its turn on purpose: it adds cache hints, or removes parts.
    if (turn.w === own) return message;
    const details = message.reasoning_details ?? [];
    const restored = restoreKept(message, turn);
    if (restored === undefined) return message;
    // Details that are neither those of the turn nor merged from them are the client's own.
    const contents = new Set(turn.e.map(contentOf));
    const isSame = textOf(details) === textOf(turn.e) || details.every((detail) => contents.has(contentOf(detail)));
    return isSame ? restored : message;
  }

  /** The message with its issuer, if this process knows who made its opaque state. */
  function attributed(message: Message): Message {
    if (message.role !== 'assistant' || message.ext?.issuer !== undefined) return message;
    for (const detail of message.reasoning_details ?? []) {
      const issuer = isOpaque(detail) ? vault.issuerOf(opaqueOf(detail)) : undefined;
      if (issuer !== undefined) return { ...message, ext: { wire: CHAT_WIRE, rest: {}, ...message.ext, issuer } };
    }
    return message;
  }

  function finish(call: Call, restored: Message[], report: Report[]): RestoredCall {
    const messages = restored.map(attributed);
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
    const turn = needsKeeping(message) ? keptTurn(message, wire, issuer) : undefined;
    // The vault keeps no longer ones.
    const isLong = isLongJson(turn, limits.turn_state_chars_max * JSON_CHARS_FACTOR);
    const text = turn === undefined || isLong ? undefined : JSON.stringify(turn);
    const place = vault.placeOf(workspace_id, message, request.messages.at(-1));
    if (place !== undefined) vault.keep(place, text);
    if (!is_sealed) vault.keep(vault.placeOfGeneration(workspace_id, generation_id), text);
  }

  return {
    restore(call, mayCarry) {
      const { request, principal } = call;
      // A conversation of texts only has no state.
      if (!contentsOf(request).is_stateful) return { call, report: [], issuer: undefined };
      const isAccepted = keeps && mayCarry();
      // A client that did not see the reasoning did not leave it out on purpose.
      const own = request.ext && !hidesReasoning(request) ? request.ext.client.ownWire : undefined;
      const report: Report[] = [];
      const lost = new Map<string, number>();
      const sealed = unsealAll(request.messages, principal);
      /** Whether an earlier message of the turn had reasoning: some clients write each block of a turn as a message. */
      let hadReasoning = false;
      const messages = request.messages.map((message, at): Message => {
        const isContinued = hadReasoning;
        const { reasoning_details: details } = message;
        hadReasoning = message.role === 'assistant' && (isContinued || Boolean(details?.length));
        if (message.role !== 'assistant') return message;
        const hasSeal = sealed.has(at);
        const unsealed = sealed.get(at) ?? { message, is_whole: false };
        if (unsealed.rest !== undefined && keeps) {
          lost.set(unsealed.rest, at);
          return unsealed.message;
        }
        if (unsealed.is_whole || !isAccepted) return unsealed.message;
        const place = vault.placeOf(principal.workspace_id, message, request.messages[at - 1]);
        if (place === undefined) return unsealed.message;
        if (details == null) {
          if (!isContinued) lost.set(place, at);
          return message;
        }
        const turn = details.length === 0 ? undefined : vault.remembered(place);
        if (turn === undefined) return unsealed.message;
        const bare = { ...message, reasoning_details: details.filter((detail) => !isReturnedSeal(detail)) };
        return compare(hasSeal ? bare : message, turn, own);
      });
      if (lost.size === 0) return finish(call, messages, report);
      const withStored = (turns: ReadonlyMap<string, string>): RestoredCall => {
        for (const [place, text] of turns) {
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
      const turns = vault.load([...lost.keys()].slice(-TURN_LOOKUPS_MAX), call.store_wait);
      return turns instanceof Promise ? turns.then(withStored) : withStored(turns);
    },

    recorder(call, candidate, wire) {
      // Of several answers, it is not known which one the client continues.
      const { carriesState } = dialectOf(wire).facts;
      if (!carriesState(candidate.endpoint.quirks) || choicesOf(call.request) > 1) return undefined;
      const issuer = issuerOf(candidate);
      const { generation_id, principal } = call;
      const owner = { organization_id: principal.organization_id, generation_id };
      /** Keeps the turn, and returns its seal if it needs one. */
      const close = (message: Message): ReasoningDetail | undefined => {
        const wantsSeal = takesSeal(call.request, wire) && needsSeal(message);
        const seal = wantsSeal ? sealer.seal(sealedTurn(message, wire, issuer), owner) : undefined;
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
