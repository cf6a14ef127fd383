import { createHmac, createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StoreWait } from '../../http/store-wait.ts';
import { limits } from '../../limits.ts';
import type { Message, ToolCall } from '../../schemas/inner.ts';

/** Characters of arguments and messages that identify a turn. Of longer ones only the ends do. */
const TURN_IDENTITY_CHARS_MAX = 256 * 1024;
/** Turns of one write, and turns that may wait for a store that fails. */
const TURN_BATCH_MAX = 100;
const TURNS_UNWRITTEN_MAX = 5_000;
export const TURNS_UNWRITTEN_CHARS_MAX = 64 * 1024 * 1024;
const TURN_WRITE_RETRY_MS = 1_000;
/** How long an absent turn counts as absent: another process may be writing it. */
export const TURN_ABSENCE_MS = 10_000;
/** How long a request waits for the store to return former turns. */
const TURN_READ_MS_MAX = 500;
const TURN_SWEEP_MS = 60_000;

/** The store of kept turns, shared by all processes. */
export interface TurnStore {
  insert(rows: readonly { id: string; owner: string; sealed: string; expires_at: string }[]): Promise<void>;
  /** The rows with these ids that have not expired. */
  findMany(ids: readonly string[], now: string): Promise<{ id: string; sealed: string }[]>;
  /** Deletes expired rows, and the oldest rows beyond a number and a total length. */
  sweep(now: string, most: { rows: number; chars: number }): Promise<void>;
  /** Deletes the rows of an owner. */
  deleteBy(owner: string): Promise<void>;
}

/** Encrypts the texts in the store. */
export interface Crypt {
  seal(text: string, place: string): string;
  /** Throws if it was sealed for another place. */
  open(sealed: string, place: string): string;
}

/** Keeps turns by their tool calls, for clients that drop reasoning state. */
export interface TurnVault {
  /** The key of a turn; undefined for a turn without calls. `before`: the message that it answers. */
  placeOf(workspaceId: string, turn: Message, before: Message | undefined): string | undefined;
  /** The key of the turn that a generation made. */
  placeOfGeneration(workspaceId: string, generationId: string): string;
  /** Keeps a turn in memory, and writes it to the store soon. `text` undefined: the turn is known to have no state. */
  keep(place: string, text: string | undefined): void;
  /** The kept turns. Synchronous if this process knows all places. */
  load(
    places: readonly string[],
    storeWait?: StoreWait | undefined,
  ): ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>;
  /** The turn, if this process has it in memory. */
  remembered(place: string): string | undefined;
  /** Remembers in memory the account that made a piece of opaque state. */
  keepIssuer(data: string, issuer: string): void;
  issuerOf(data: string): string | undefined;
  /** Deletes the turns of a deleted workspace, also those that are not written yet. */
  forget(workspaceId: string): void;
  /** Writes the rest. */
  stop(): Promise<void>;
}

export interface VaultOptions {
  secret: string;
  /** Undefined if turns are kept in memory only. */
  store: TurnStore | undefined;
  crypt: Crypt;
  nowMs(): number;
  keep_ms: number;
  log: { warn(facts: object, message: string): void };
}

/** Without a lookahead, which would read a long run of letters again from each of its letters. */
const LONG_RUNS = /[A-Za-z0-9]{12,}/g;

/** Whether an id is random enough to identify a conversation. For others, the identity includes the arguments and the message before. */
function isUnique(id: string): boolean {
  return id.match(LONG_RUNS)?.some((run) => /\d/.test(run)) ?? false;
}

/** A very long text as its length and its ends. */
function ends(text: string): string {
  const chars = TURN_IDENTITY_CHARS_MAX / 2;
  if (text.length <= 2 * chars) return text;
  return `${text.length} ${text.slice(0, chars)} ${text.slice(-chars)}`;
}

/** The same text for equal JSON values. */
function canonical(json: string): string {
  if (json.length > TURN_IDENTITY_CHARS_MAX) return ends(json);
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(entries.map(([name, entry]) => [name, sorted(entry)]));
  };
  try {
    return JSON.stringify(sorted(JSON.parse(json)));
  } catch {
    return json;
  }
}

function textOf({ content }: Message): string {
  if (!Array.isArray(content)) return content ?? '';
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function identityOf({ id, function: { name, arguments: text } }: ToolCall, before: Message | undefined): string[] {
  if (isUnique(id)) return [id, name];
  return [id, name, canonical(text), before === undefined ? '' : `${before.role} ${ends(textOf(before))}`];
}

/** The owner's part of a place, which is `owner.turn`. */
function ownerOf(place: string): string {
  return place.slice(0, place.indexOf('.'));
}

function placesKey(secret: string): KeyObject {
  return createSecretKey(new Uint8Array(hkdfSync('sha256', secret, '', 'model-gateway turn places', 32)));
}

function placeName(key: KeyObject, identity: readonly string[], chars: number): string {
  return createHmac('sha256', key).update(JSON.stringify(identity)).digest('base64url').slice(0, chars);
}

const OWNER_CHARS = 22;
const TURN_CHARS = 32;

/** The owner of a workspace's turns in the store. */
export function turnOwner(secret: string, workspaceId: string): string {
  return placeName(placesKey(secret), [workspaceId], OWNER_CHARS);
}

/** The memory of one process, oldest first. `text` undefined: known to be absent until `until_ms`. */
class Memory {
  readonly #entries = new Map<string, { text: string | undefined; until_ms: number }>();
  #chars = 0;

  set(place: string, text: string | undefined, untilMs: number): void {
    this.#delete(place);
    this.#entries.set(place, { text, until_ms: untilMs });
    this.#chars += text?.length ?? 0;
    for (const oldest of this.#entries.keys()) {
      const isFull =
        this.#chars > limits.turn_states_chars_max || this.#entries.size > limits.turn_states_remembered_max;
      if (!isFull) return;
      this.#delete(oldest);
    }
  }

  deleteBy(owner: string): void {
    for (const place of this.#entries.keys()) if (ownerOf(place) === owner) this.#delete(place);
  }

  get(place: string, nowMs: number): { text: string | undefined } | undefined {
    const entry = this.#entries.get(place);
    if (entry === undefined) return undefined;
    if (entry.until_ms <= nowMs) {
      this.#delete(place);
      return undefined;
    }
    // A used entry becomes the newest.
    this.#entries.delete(place);
    this.#entries.set(place, entry);
    return entry;
  }

  #delete(place: string): void {
    this.#chars -= this.#entries.get(place)?.text?.length ?? 0;
    this.#entries.delete(place);
  }
}

/**
 * Keeps turns in memory, and encrypted in a store that is written in the background, one batch after another. Places are keyed hashes:
 * the store does not reveal the owners of turns.
 */
export function createTurnVault({ secret, store, crypt, nowMs, keep_ms, log }: VaultOptions): TurnVault {
  const key = placesKey(secret);
  const memory = new Memory();
  const issuers = new Memory();
  const pieceOf = (data: string) => hash('sha256', data, 'base64').slice(0, 24);
  const unwritten = new Map<string, string>();
  let unwrittenChars = 0;
  let writing: Promise<void> | undefined;
  let sweptMs = 0;
  const stopping = new AbortController();
  /** Owners whose turns were deleted while a batch was being written: the batch may restore them. */
  const deletedOwners = new Set<string>();
  /** The last owner: a request looks up the same one for each of its turns. */
  let lastOwner = { workspace_id: '', owner: '' };
  const placeFor = (workspaceId: string, identity: string[]) => {
    if (lastOwner.workspace_id !== workspaceId) {
      lastOwner = { workspace_id: workspaceId, owner: placeName(key, [workspaceId], OWNER_CHARS) };
    }
    return `${lastOwner.owner}.${placeName(key, [workspaceId, ...identity], TURN_CHARS)}`;
  };

  function removeUnwritten(id: string): void {
    unwrittenChars -= unwritten.get(id)?.length ?? 0;
    unwritten.delete(id);
  }

  async function writeBatch(into: TurnStore): Promise<void> {
    const batch = [...unwritten].slice(0, TURN_BATCH_MAX);
    const expiresAt = new Date(nowMs() + keep_ms).toISOString();
    const rows = batch.map(([id, text]) => ({
      id,
      owner: ownerOf(id),
      sealed: crypt.seal(text, id),
      expires_at: expiresAt,
    }));
    deletedOwners.clear();
    await into.insert(rows);
    for (const owner of deletedOwners) await into.deleteBy(owner);
    // A turn that changed meanwhile is written again.
    for (const [id, text] of batch) if (unwritten.get(id) === text) removeUnwritten(id);
    if (nowMs() - sweptMs < TURN_SWEEP_MS) return;
    sweptMs = nowMs();
    const most = { rows: limits.turn_states_max, chars: limits.turn_states_stored_chars_max };
    await into.sweep(new Date(sweptMs).toISOString(), most);
  }

  async function write(into: TurnStore): Promise<void> {
    // Turns of the same turn of the event loop join the batch.
    await Promise.resolve();
    while (unwritten.size > 0) {
      try {
        await writeBatch(into);
      } catch (err) {
        if (stopping.signal.aborted) throw err;
        log.warn({ err, waiting: unwritten.size }, 'reasoning state could not be stored; this process remembers it');
        await sleep(TURN_WRITE_RETRY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    }
  }

  function writeSoon(): void {
    if (store === undefined || writing !== undefined) return;
    writing = write(store)
      .catch(() => undefined)
      .finally(() => {
        writing = undefined;
        if (unwritten.size > 0 && !stopping.signal.aborted) writeSoon();
      });
  }

  /** Bounds the wait for a store that hangs. */
  async function inTime<T>(work: Promise<T>, storeWait: StoreWait | undefined): Promise<T> {
    const waiting = new AbortController();
    const late = sleep(TURN_READ_MS_MAX, undefined, { signal: waiting.signal }).then(() => {
      throw new Error(`the store did not answer within ${TURN_READ_MS_MAX} ms`);
    });
    try {
      return await Promise.race([storeWait === undefined ? work : storeWait.within(work), late]);
    } finally {
      late.catch(() => undefined);
      waiting.abort();
    }
  }

  async function readStored(
    places: readonly string[],
    from: TurnStore,
    storeWait: StoreWait | undefined,
  ): Promise<[string, string][]> {
    const now = nowMs();
    const turns = new Map<string, string>();
    try {
      for (const { id, sealed } of await inTime(from.findMany(places, new Date(now).toISOString()), storeWait)) {
        turns.set(id, crypt.open(sealed, id));
      }
    } catch (err) {
      // An answer without its earlier reasoning is better than none.
      log.warn({ err }, 'reasoning state could not be read');
      return [...turns];
    }
    for (const place of places) {
      const text = turns.get(place);
      memory.set(place, text, now + (text === undefined ? TURN_ABSENCE_MS : keep_ms));
    }
    return [...turns];
  }

  return {
    placeOf(workspaceId, { tool_calls }, before) {
      const [first] = tool_calls ?? [];
      if (first === undefined) return undefined;
      return placeFor(workspaceId, identityOf(first, before));
    },

    placeOfGeneration: (workspaceId, generationId) => placeFor(workspaceId, [generationId]),

    keep(place, text) {
      const bounded = text !== undefined && text.length > limits.turn_state_chars_max ? undefined : text;
      memory.set(place, bounded, nowMs() + keep_ms);
      if (bounded === undefined || store === undefined) return;
      removeUnwritten(place);
      const isFull = unwrittenChars + bounded.length > TURNS_UNWRITTEN_CHARS_MAX;
      if (isFull || unwritten.size >= TURNS_UNWRITTEN_MAX) return;
      unwrittenChars += bounded.length;
      unwritten.set(place, bounded);
      writeSoon();
    },

    load(places, storeWait) {
      const turns = new Map<string, string>();
      const missing: string[] = [];
      for (const place of places) {
        const entry = memory.get(place, nowMs());
        if (entry === undefined) missing.push(place);
        else if (entry.text !== undefined) turns.set(place, entry.text);
      }
      if (missing.length === 0 || store === undefined) return turns;
      return readStored(missing, store, storeWait).then((read) => {
        for (const [place, text] of read) turns.set(place, text);
        return turns;
      });
    },

    remembered: (place) => memory.get(place, nowMs())?.text,

    keepIssuer: (data, issuer) => issuers.set(pieceOf(data), issuer, nowMs() + keep_ms),

    issuerOf: (data) => issuers.get(pieceOf(data), nowMs())?.text,

    forget(workspaceId) {
      const owner = placeName(key, [workspaceId], OWNER_CHARS);
      memory.deleteBy(owner);
      for (const place of unwritten.keys()) if (ownerOf(place) === owner) removeUnwritten(place);
      if (writing !== undefined) deletedOwners.add(owner);
    },

    async stop() {
      stopping.abort();
      await writing;
    },
  };
}
