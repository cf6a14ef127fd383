import { createHmac, createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StoreWait } from '../../http/store-wait.ts';
import { limits } from '../../limits.ts';
import type { Message, ToolCall } from '../../schemas/inner.ts';

/** Where kept turns are for other processes, and after a restart. */
export interface TurnStore {
  insert(rows: readonly { id: string; owner: string; sealed: string; expires_at: string }[]): Promise<void>;
  /** Those of the ids that are there and have not expired. */
  findMany(ids: readonly string[], now: string): Promise<{ id: string; sealed: string }[]>;
  /** Deletes what has expired, and the oldest beyond a number and a length. */
  sweep(now: string, most: { rows: number; chars: number }): Promise<void>;
  /** Deletes all that an owner has. */
  deleteBy(owner: string): Promise<void>;
}

/** What keeps the store from telling anything. */
export interface Crypt {
  seal(text: string, place: string): string;
  /** Throws where it was sealed elsewhere. */
  open(sealed: string, place: string): string;
}

/** Turns by their tool calls: what a client that drops it cannot bring back. */
export interface TurnVault {
  /** The name of a turn's place; undefined for a turn without calls. `before` is the message that it answers. */
  placeOf(workspace_id: string, turn: Message, before: Message | undefined): string | undefined;
  /** The same of a turn whose client can tell the generation that made it. */
  placeOfGeneration(workspace_id: string, generation_id: string): string;
  /** At once in this process; written to the store soon. `undefined`: the turn is known to have nothing. */
  keep(place: string, text: string | undefined): void;
  /** At once where this process knows of every place. */
  recall(
    places: readonly string[],
    store_wait?: StoreWait | undefined,
  ): ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>;
  /** The same of what this process remembers. */
  remembered(place: string): string | undefined;
  /** Remembers in this process whose account made a piece of opaque state. */
  keepIssuer(data: string, issuer: string): void;
  issuerOf(data: string): string | undefined;
  /** Forgets the turns of a workspace that is gone, also those that wait for the store. */
  forget(workspace_id: string): void;
  /** Writes what waits. */
  stop(): Promise<void>;
}

export interface VaultOptions {
  secret: string;
  /** Undefined: this process's memory alone. */
  store: TurnStore | undefined;
  crypt: Crypt;
  now_ms(): number;
  keep_ms: number;
  log: { warn(facts: object, message: string): void };
}

/** Ids as random as they are long: one conversation's. Others are told apart by what was called, and what was answered. */
const UNIQUE = /(?=[A-Za-z]*\d)[A-Za-z0-9]{12,}/;

/** A very long text by its ends and its length. */
function ends(text: string): string {
  const chars = limits.turn_identity_chars_max / 2;
  if (text.length <= 2 * chars) return text;
  return `${text.length} ${text.slice(0, chars)} ${text.slice(-chars)}`;
}

/** A text for the same value, however it is written. */
function canonical(json: string): string {
  if (json.length > limits.turn_identity_chars_max) return ends(json);
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
  if (UNIQUE.test(id)) return [id, name];
  return [id, name, canonical(text), before === undefined ? '' : `${before.role} ${ends(textOf(before))}`];
}

/** The owner and the turn stand side by side in the name of a place. */
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

/** What the store calls a workspace that has turns. */
export function turnOwner(secret: string, workspace_id: string): string {
  return placeName(placesKey(secret), [workspace_id], OWNER_CHARS);
}

/** What one process remembers, oldest first; `text` undefined: nothing, believed until `until_ms`. */
class Memory {
  readonly #entries = new Map<string, { text: string | undefined; until_ms: number }>();
  #chars = 0;

  set(place: string, text: string | undefined, until_ms: number): void {
    this.#delete(place);
    this.#entries.set(place, { text, until_ms });
    this.#chars += text?.length ?? 0;
    for (const oldest of this.#entries.keys()) {
      const is_full =
        this.#chars > limits.turn_states_chars_max || this.#entries.size > limits.turn_states_remembered_max;
      if (!is_full) return;
      this.#delete(oldest);
    }
  }

  deleteBy(owner: string): void {
    for (const place of this.#entries.keys()) if (ownerOf(place) === owner) this.#delete(place);
  }

  get(place: string, now_ms: number): { text: string | undefined } | undefined {
    const entry = this.#entries.get(place);
    if (entry === undefined) return undefined;
    if (entry.until_ms <= now_ms) {
      this.#delete(place);
      return undefined;
    }
    // What is asked for is the newest again.
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
 * Keeps turns: in memory, and encrypted in a store that is written behind, in batches, as soon as the last batch is through.
 * Places are keyed hashes, so that the store does not tell whose turns it has.
 */
export function createTurnVault({ secret, store, crypt, now_ms, keep_ms, log }: VaultOptions): TurnVault {
  const key = placesKey(secret);
  const memory = new Memory();
  const issuers = new Memory();
  const pieceOf = (data: string) => hash('sha256', data, 'base64').slice(0, 24);
  const unwritten = new Map<string, string>();
  let unwritten_chars = 0;
  let writing: Promise<void> | undefined;
  let swept_ms = 0;
  const stopping = new AbortController();
  /** Whose turns were forgotten while a batch was on its way, with which they come back. */
  const gone = new Set<string>();
  /** The last that was asked for: a request asks for one alone, as often as it has turns. */
  let known = { workspace_id: '', owner: '' };
  const placeFor = (workspace_id: string, identity: string[]) => {
    if (known.workspace_id !== workspace_id) {
      known = { workspace_id, owner: placeName(key, [workspace_id], OWNER_CHARS) };
    }
    return `${known.owner}.${placeName(key, [workspace_id, ...identity], TURN_CHARS)}`;
  };

  function forget(id: string): void {
    unwritten_chars -= unwritten.get(id)?.length ?? 0;
    unwritten.delete(id);
  }

  async function writeBatch(into: TurnStore): Promise<void> {
    const batch = [...unwritten].slice(0, limits.turn_batch_max);
    const expires_at = new Date(now_ms() + keep_ms).toISOString();
    const rows = batch.map(([id, text]) => ({ id, owner: ownerOf(id), sealed: crypt.seal(text, id), expires_at }));
    gone.clear();
    await into.insert(rows);
    for (const owner of gone) await into.deleteBy(owner);
    // A turn that was kept again meanwhile is written again.
    for (const [id, text] of batch) if (unwritten.get(id) === text) forget(id);
    if (now_ms() - swept_ms < limits.turn_sweep_ms) return;
    swept_ms = now_ms();
    const most = { rows: limits.turn_states_max, chars: limits.turn_states_stored_chars_max };
    await into.sweep(new Date(swept_ms).toISOString(), most);
  }

  async function write(into: TurnStore): Promise<void> {
    // What comes in the same turn of the loop goes in the same batch.
    await Promise.resolve();
    while (unwritten.size > 0) {
      try {
        await writeBatch(into);
      } catch (err) {
        if (stopping.signal.aborted) throw err;
        log.warn({ err, waiting: unwritten.size }, 'reasoning state could not be stored; this process remembers it');
        await sleep(limits.turn_write_retry_ms, undefined, { signal: stopping.signal }).catch(() => undefined);
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

  /** A store that hangs holds nobody up for long. */
  async function inTime<T>(work: Promise<T>, store_wait: StoreWait | undefined): Promise<T> {
    const waiting = new AbortController();
    const late = sleep(limits.turn_read_ms_max, undefined, { signal: waiting.signal }).then(() => {
      throw new Error(`the store did not answer within ${limits.turn_read_ms_max} ms`);
    });
    try {
      return await Promise.race([store_wait === undefined ? work : store_wait.within(work), late]);
    } finally {
      late.catch(() => undefined);
      waiting.abort();
    }
  }

  async function readStored(
    places: readonly string[],
    from: TurnStore,
    store_wait: StoreWait | undefined,
  ): Promise<[string, string][]> {
    const now = now_ms();
    const found = new Map<string, string>();
    try {
      for (const { id, sealed } of await inTime(from.findMany(places, new Date(now).toISOString()), store_wait)) {
        found.set(id, crypt.open(sealed, id));
      }
    } catch (err) {
      // An answer without its former reasoning is better than none.
      log.warn({ err }, 'reasoning state could not be read');
      return [...found];
    }
    for (const place of places) {
      const text = found.get(place);
      memory.set(place, text, now + (text === undefined ? limits.turn_absence_ms : keep_ms));
    }
    return [...found];
  }

  return {
    placeOf(workspace_id, { tool_calls }, before) {
      const [first] = tool_calls ?? [];
      if (first === undefined) return undefined;
      return placeFor(workspace_id, identityOf(first, before));
    },

    placeOfGeneration: (workspace_id, generation_id) => placeFor(workspace_id, [generation_id]),

    keep(place, text) {
      const kept = text !== undefined && text.length > limits.turn_state_chars_max ? undefined : text;
      memory.set(place, kept, now_ms() + keep_ms);
      if (kept === undefined || store === undefined) return;
      forget(place);
      const is_full = unwritten_chars + kept.length > limits.turns_unwritten_chars_max;
      if (is_full || unwritten.size >= limits.turns_unwritten_max) return;
      unwritten_chars += kept.length;
      unwritten.set(place, kept);
      writeSoon();
    },

    recall(places, store_wait) {
      const found = new Map<string, string>();
      const missing: string[] = [];
      for (const place of places) {
        const entry = memory.get(place, now_ms());
        if (entry === undefined) missing.push(place);
        else if (entry.text !== undefined) found.set(place, entry.text);
      }
      if (missing.length === 0 || store === undefined) return found;
      return readStored(missing, store, store_wait).then((read) => {
        for (const [place, text] of read) found.set(place, text);
        return found;
      });
    },

    remembered: (place) => memory.get(place, now_ms())?.text,

    keepIssuer: (data, issuer) => issuers.set(pieceOf(data), issuer, now_ms() + keep_ms),

    issuerOf: (data) => issuers.get(pieceOf(data), now_ms())?.text,

    forget(workspace_id) {
      const owner = placeName(key, [workspace_id], OWNER_CHARS);
      memory.deleteBy(owner);
      for (const place of unwritten.keys()) if (ownerOf(place) === owner) forget(place);
      if (writing !== undefined) gone.add(owner);
    },

    async stop() {
      stopping.abort();
      await writing;
    },
  };
}
