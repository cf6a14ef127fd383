import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { JsonProgress } from '../../schemas/json-progress.ts';
import { mintCallId } from '../shared/tool-ids.ts';
import { numberOf, textOf, type WireToolCall } from './wire.ts';

/** One step of one call: its opening (with id and name), a piece of its arguments, or both. */
export interface CallStep {
  /** The index of the call in the turn, from 0. */
  ordinal: number;
  /** On the call's first step only. */
  opens?: { id: string; name: string; rest?: JsonObject };
  arguments: string;
  /** Google's compatible endpoint: the signature of the thought behind the call, and the call's id. */
  signature?: { data: string; id: string };
}

/** Separates the calls of one answer, whatever fields the upstream leaves out of their deltas. */
export interface CallReader {
  count(): number;
  /** `isWhole`: the entries are of a whole message, so each is a call of its own. */
  read(entries: readonly (WireToolCall | null)[], isWhole: boolean): CallStep[];
  /** The missing steps at the end of the answer: `{}` for calls without arguments, the end of custom inputs. */
  end(): CallStep[];
}

interface Call {
  ordinal: number;
  /** The client's id; empty until the call is open. */
  id: string;
  wireIndex: number | undefined;
  wireId: string | undefined;
  name: string;
  isCustom: boolean;
  isOpen: boolean;
  /** The arguments so far. */
  readonly args: JsonProgress;
  /** Arguments received before the name. */
  pending: string;
}

/**
 * The reader of one answer. `usedIds` are the ids of the conversation: an upstream that repeats one, or sends none, gets a minted id
 * (models on Bedrock restart at `call_0` in every answer). `declared` are the names of the tools as sent, by which a name that is sent
 * in pieces is recognised.
 */
export function createCallReader(
  generationId: string,
  usedIds: readonly string[],
  originalName: (name: string) => string,
  declared: readonly string[] = [],
): CallReader {
  const calls: Call[] = [];
  /** The latest call of each index, of each id, and of each pair. */
  const byIndex = new Map<number, Call>();
  const byId = new Map<string, Call>();
  const byBoth = new Map<string, Call>();
  /** Calls with a declared name that are not open. */
  const unopened = new Set<Call>();
  const usedOrMinted = new Set(usedIds);
  const names = new Set(declared);
  const parts = new Map<string, boolean>();

  /** Whether a declared name begins with this name. The arguments then show which one is meant. */
  function isPart(name: string): boolean {
    let known = parts.get(name);
    if (known === undefined) {
      known = declared.some((whole) => whole !== name && whole.startsWith(name));
      parts.set(name, known);
    }
    return known;
  }
  const isContinued = (call: Call, piece: string) =>
    !call.isOpen && isPart(call.name) && (names.has(call.name + piece) || isPart(call.name + piece));

  function remember(call: Call, id: string): void {
    const setLatest = <K>(known: Map<K, Call>, key: K) => {
      if ((known.get(key)?.ordinal ?? -1) < call.ordinal) known.set(key, call);
    };
    setLatest(byId, id);
    setLatest(byBoth, `${call.wireIndex} ${id}`);
  }

  function find(entry: WireToolCall, name: string | undefined, position: number): Call | undefined {
    const id = textOf(entry.id);
    const index = numberOf(entry.index);
    if (id !== undefined) {
      const known = index === undefined ? byId.get(id) : byBoth.get(`${index} ${id}`);
      if (known !== undefined) return known;
    }
    const call = index === undefined ? calls.at(-1) : byIndex.get(index);
    if (call === undefined) return undefined;
    // Some upstreams send index 0 for every call of a parallel set: another id, another name, or the name once more after
    // complete arguments, is another call.
    if (id !== undefined && name === undefined && call.name !== '' && !call.args.isWhole) {
      // Poolside gives the later deltas of a call another id (https://github.com/poolsideai/pool/issues/9).
      return call;
    }
    if (id !== undefined && (call.wireId !== undefined || index === undefined)) return undefined;
    if (name === undefined || (index !== undefined && isContinued(call, name))) return call;
    const isAnother = call.name !== '' && (call.name !== name || call.args.isWhole);
    return isAnother || (index === undefined && position > 0) ? undefined : call;
  }

  function open(call: Call, id: string | undefined): CallStep['opens'] {
    call.isOpen = true;
    unopened.delete(call);
    const isUsable = id !== undefined && !usedOrMinted.has(id);
    const clientId = isUsable ? id : mintCallId(generationId, call.ordinal);
    usedOrMinted.add(clientId);
    call.id = clientId;
    const rest: JsonObject = {};
    if (id !== undefined && !isUsable) rest['id'] = id;
    if (call.isCustom) rest['type'] = 'custom';
    const opens = { id: clientId, name: originalName(call.name) };
    return Object.keys(rest).length === 0 ? opens : { ...opens, rest };
  }

  /** Opens former calls with a declared name when another call begins. Clients expect calls in order. */
  function openFormer(steps: CallStep[]): void {
    for (const call of unopened) {
      steps.push({ ordinal: call.ordinal, opens: open(call, call.wireId), arguments: '' });
    }
  }

  function step(entry: WireToolCall, isWhole: boolean, position: number, steps: CallStep[]): CallStep | undefined {
    const custom = textOf(entry.custom?.name) === undefined && !textOf(entry.custom?.input) ? undefined : entry.custom;
    const name = textOf(custom?.name) ?? textOf(entry.function?.name);
    let call = isWhole ? undefined : find(entry, name, position);
    if (call === undefined) {
      openFormer(steps);
      call = {
        ordinal: calls.length,
        id: '',
        wireIndex: numberOf(entry.index),
        wireId: undefined,
        name: '',
        isCustom: custom != null && textOf(entry.function?.name) === undefined,
        isOpen: false,
        args: new JsonProgress(),
        pending: '',
      };
      calls.push(call);
      if (call.wireIndex !== undefined) byIndex.set(call.wireIndex, call);
    }
    const id = textOf(entry.id);
    if (call.wireId === undefined && id !== undefined) {
      call.wireId = id;
      remember(call, id);
    }
    if (name !== undefined && (call.name === '' || isContinued(call, name))) {
      call.name += name;
      if (names.has(call.name)) unopened.add(call);
      else unopened.delete(call);
    }
    let piece = call.isCustom ? customInput(call, textOf(custom?.input)) : argumentsText(entry.function?.arguments);
    call.args.add(piece);
    if (call.name === '' || (!isWhole && call.args.text === '' && isPart(call.name))) {
      call.pending += piece;
      return undefined;
    }
    const opens = call.isOpen ? undefined : open(call, call.wireId);
    piece = call.pending + piece;
    call.pending = '';
    const data = textOf(entry.extra_content?.google?.thought_signature);
    if (opens === undefined && piece === '' && data === undefined) return undefined;
    return {
      ordinal: call.ordinal,
      ...(opens === undefined ? {} : { opens }),
      arguments: piece,
      ...(data === undefined ? {} : { signature: { data, id: call.id } }),
    };
  }

  return {
    count: () => calls.length,
    read(entries, isWhole) {
      const steps: CallStep[] = [];
      for (let position = 0; position < entries.length; position += 1) {
        const entry = entries[position];
        if (typeof entry !== 'object' || entry === null || isNothing(entry)) continue;
        const nextStep = step(entry, isWhole, position, steps);
        if (nextStep !== undefined) steps.push(nextStep);
      }
      return steps;
    },
    end() {
      const steps: CallStep[] = [];
      for (const call of calls) {
        const rest = call.isCustom
          ? call.args.text !== ''
            ? '"}'
            : '{"input":""}'
          : call.args.text !== ''
            ? ''
            : '{}';
        const missing: CallStep = { ordinal: call.ordinal, arguments: call.pending + rest };
        call.pending = '';
        if (!call.isOpen) missing.opens = open(call, call.wireId);
        if (missing.opens !== undefined || missing.arguments !== '') steps.push(missing);
      }
      return steps;
    },
  };
}

/** Whether an entry has only zero values, which Go servers send instead of no call. */
function isNothing(entry: WireToolCall): boolean {
  return (
    textOf(entry.id) === undefined &&
    textOf(entry.function?.name) === undefined &&
    argumentsText(entry.function?.arguments) === '' &&
    textOf(entry.custom?.name) === undefined &&
    textOf(entry.custom?.input) === undefined
  );
}

/** Arguments as text: some local servers send an object. An empty one may precede the arguments, and is added at the end. */
function argumentsText(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  const text = JSON.stringify(value);
  return text === '{}' ? '' : text;
}

/** The text of a custom tool's input as `{"input": "…"}`, escaped piece by piece. */
function customInput(call: Call, input: string | undefined): string {
  if (input === undefined) return '';
  const escaped = JSON.stringify(input).slice(1, -1);
  return call.args.text !== '' ? escaped : `{"input":"${escaped}`;
}
