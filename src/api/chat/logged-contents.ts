import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import type { Vault } from '../../accounts/vault.ts';
import type { Principal } from '../../http/principal.ts';
import type { ContentKeeper, LoggedCall } from '../../inference/observe/request-log.ts';
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import { DAY_MS } from '../../schemas/budget.ts';
import { type LoggedContent, stubOf } from '../../schemas/logged-content.ts';
import { isStorable } from '../../schemas/text.ts';
import type { ContentPlace, LoggedContentRow, LoggedContentStore } from '../../storage/logged-contents.ts';
import { isUnavailable } from '../../storage/unavailable.ts';
import type { ContentLoss, Metrics } from '../../telemetry/metrics.ts';
import { ownUserOf } from '../change.ts';

/** Calls in one write. */
const LOGGED_BATCH_ENTRIES_MAX = 200;
/** Characters in one write. */
const LOGGED_BATCH_CHARS_MAX = 4 * 1024 * 1024;
const LOGGED_RETRY_MS = 1_000;
const LOGGED_STOP_MS_MAX = 5_000;
const LOGGED_SWEEP_MS = 600_000;
/** Characters written after which contents beyond the bounds are deleted at once, before the next regular deletion. */
const LOGGED_UNSWEPT_CHARS_MAX = 128 * 1024 * 1024;
/** Kept calls that a replay reads at a time. */
const REPLAY_PAGE_ROWS = 20;

const deflate = promisify(deflateRaw);
const inflate = promisify(inflateRaw);

/** The most bytes that a character takes in UTF-8. */
const BYTES_PER_CHAR = 3;

/** The stored request and answer of one call. */
export interface StoredContent {
  id: string;
  content: LoggedContent;
}

/** Stores requests and answers of calls whose workspace logs them, in the background. */
export interface LoggedContents extends ContentKeeper {
  /** The content that the caller may read: all of the organization for a management key; else what keys of the same owner sent in the workspace. */
  find(id: string, principal: Principal): Promise<LoggedContent | undefined>;
  /** The contents of a workspace since a moment, newest first. */
  list(of: { workspace_id: string; since: string; limit: number }): AsyncGenerator<StoredContent, void, undefined>;
  /** Starts deleting expired contents, also if nothing is logged any more. */
  start(): void;
  /** Writes the queue, within a bounded time. */
  stop(): Promise<void>;
}

export interface LoggedContentsOptions {
  store: LoggedContentStore;
  vault: Vault;
  retention_days: number;
  nowMs(): number;
  log: { warn(facts: object, message: string): void };
  metrics: Pick<Metrics, 'contentsLost'>;
  /** How many characters are written between two deletions of what exceeds the bounds. Default: many. */
  unswept_chars_max?: number;
}

/** A content in the queue. */
interface Waiting extends Omit<LoggedContentRow, 'sealed' | 'expires_at'> {
  model: string | null;
  json: string;
}

/** A stub in place of a content: its call, and the reason of its loss. */
function stubbed(waiting: LoggedCall, reason: string): Waiting {
  const { created_at, model } = waiting;
  return { ...waiting, json: JSON.stringify(stubOf({ reason, created_at, model })) };
}

/** The reasons in words. */
const WHY: Readonly<Record<ContentLoss, string>> = {
  build: 'its content could not be read',
  seal: 'its content could not be encrypted',
  store: 'the store refused its content',
  overflow: 'too many calls waited for the store',
  shutdown: 'the process ended before the store took it',
};

/** The context of encryption, which binds a content to the row of its call. */
const placeOf = ({ id, workspace_id }: Pick<LoggedContentRow, 'id' | 'workspace_id'>) =>
  `logged content ${workspace_id} ${id}`;

async function sealed(vault: Vault, waiting: Waiting): Promise<string> {
  const packed = `${waiting.json.length}.${(await deflate(waiting.json)).toString('base64')}`;
  return vault.seal(packed, placeOf(waiting));
}

async function opened(vault: Vault, row: LoggedContentRow): Promise<LoggedContent> {
  const packed = vault.open(row.sealed, placeOf(row));
  const dot = packed.indexOf('.');
  const bytes = await inflate(Buffer.from(packed.slice(dot + 1), 'base64'), {
    maxOutputLength: Number(packed.slice(0, dot)) * BYTES_PER_CHAR,
  });
  return JSON.parse(bytes.toString('utf8')) as LoggedContent;
}

/** Whether a caller may read the content of a call of its organization. */
function mayRead(principal: Principal, { workspace_id, key_hash, user_id }: Omit<Waiting, 'json' | 'model'>): boolean {
  const ownUser = ownUserOf(principal);
  if (ownUser !== undefined) return user_id === ownUser;
  if (principal.kind === 'management') return true;
  if (principal.workspace_id !== workspace_id) return false;
  return principal.key_hash === key_hash || (user_id !== null && principal.user_id === user_id);
}

/** Makes the log of contents. Each row is one call, compressed and encrypted. */
export function createLoggedContents(options: LoggedContentsOptions): LoggedContents {
  const { store, vault, retention_days, nowMs, log, metrics } = options;
  const { unswept_chars_max = LOGGED_UNSWEPT_CHARS_MAX } = options;
  const at = (ms: number) => new Date(ms).toISOString();
  /** In order of arrival. */
  const queue = new Map<string, Waiting>();
  let queueChars = 0;
  /** Stubs of contents that were dropped, in order of arrival. */
  const stubs = new Map<string, Waiting>();
  /** Ids that are being written: they are not lost. */
  let batchIds: ReadonlySet<string> = new Set();
  /** Characters written since the last deletion of what exceeds the bounds. */
  let unsweptChars = 0;
  let writing: Promise<void> | undefined;
  let sweeping: Promise<void> | undefined;
  let sweeps: NodeJS.Timeout | undefined;
  const stopping = new AbortController();
  let lossNoticeMs = Number.NEGATIVE_INFINITY;

  function report(count: number, reason: ContentLoss, kept: 'stub' | 'nothing', err?: unknown): void {
    metrics.contentsLost(count, reason, kept);
    if (nowMs() - lossNoticeMs < limits.loss_notice_ms) return;
    lossNoticeMs = nowMs();
    const facts = { ...(err === undefined ? {} : { err }), count, reason, kept };
    log.warn(facts, `contents of calls are not kept: ${WHY[reason]}`);
  }

  /** Gives a content up: its stub is queued. */
  function giveUp(call: LoggedCall, reason: ContentLoss, why: string = WHY[reason], err?: unknown): void {
    report(1, reason, 'stub', err);
    stubs.set(call.id, stubbed(call, why));
    for (const oldest of stubs.keys()) {
      if (stubs.size <= limits.logged_stubs_max) break;
      if (batchIds.has(oldest)) continue;
      stubs.delete(oldest);
      report(1, 'overflow', 'nothing');
    }
    writing ??= write().finally(() => {
      writing = undefined;
    });
  }

  /** Reports everything in the queue as lost, when the gateway ends. */
  function loseAll(err?: unknown): void {
    const count = queue.size + stubs.size;
    if (count === 0) return;
    report(count, 'shutdown', 'nothing', err);
    queue.clear();
    stubs.clear();
  }

  function take(id: string): void {
    queueChars -= queue.get(id)?.json.length ?? 0;
    queue.delete(id);
    stubs.delete(id);
  }

  /** Stubs first, since they are small. */
  function* oldestFirst(): Generator<Waiting, void, undefined> {
    yield* stubs.values();
    yield* queue.values();
  }

  function nextBatch(): Waiting[] {
    const batch: Waiting[] = [];
    let chars = 0;
    for (const waiting of oldestFirst()) {
      if (batch.length >= LOGGED_BATCH_ENTRIES_MAX) break;
      chars += waiting.json.length;
      if (batch.length > 0 && chars > LOGGED_BATCH_CHARS_MAX) break;
      batch.push(waiting);
    }
    return batch;
  }

  /** The encrypted row, or a stub if that fails. Undefined if both fail. */
  async function rowOf(waiting: Waiting, isStub: boolean): Promise<LoggedContentRow | undefined> {
    const { json, model: _, ...row } = waiting;
    const expiresAt = at(nowMs() + retention_days * DAY_MS);
    try {
      return { ...row, sealed: await sealed(vault, { ...waiting, json }), expires_at: expiresAt };
    } catch (err) {
      report(1, 'seal', isStub ? 'nothing' : 'stub', err);
      return isStub ? undefined : rowOf(stubbed(waiting, WHY.seal), true);
    }
  }

  /** Writes a row by itself after its batch was refused, or else its stub. */
  async function insertOne(row: LoggedContentRow, waiting: Waiting): Promise<void> {
    try {
      await store.insert([row]);
    } catch (error) {
      if (isUnavailable(error)) throw error;
      const stub = stubs.has(row.id) ? undefined : await rowOf(stubbed(waiting, WHY.store), true);
      const refused = stub === undefined ? error : await store.insert([stub]).catch((err: unknown) => err);
      report(1, 'store', refused === undefined ? 'stub' : 'nothing', error);
    }
  }

  async function insert(batch: readonly Waiting[]): Promise<void> {
    const made = await Promise.all(batch.map((waiting) => rowOf(waiting, stubs.has(waiting.id))));
    const rows = made.filter((row) => row !== undefined);
    for (const row of rows) unsweptChars += row.sealed.length;
    if (rows.length === 0) return;
    try {
      await store.insert(rows);
    } catch (error) {
      if (isUnavailable(error)) throw error;
      // A row of a deleted workspace must not prevent the others.
      for (const [nth, row] of made.entries()) if (row !== undefined) await insertOne(row, batch[nth]!);
    }
  }

  async function write(): Promise<void> {
    // Contents that arrive shortly after join the batch.
    await sleep(limits.logged_gather_ms, undefined, { signal: stopping.signal }).catch(() => undefined);
    while (queue.size + stubs.size > 0) {
      const batch = nextBatch();
      try {
        batchIds = new Set(batch.map(({ id }) => id));
        await insert(batch);
        for (const id of batchIds) take(id);
        if (unsweptChars > unswept_chars_max) sweep();
      } catch (err) {
        if (stopping.signal.aborted) {
          loseAll(err);
          return;
        }
        log.warn({ err, waiting: queue.size + stubs.size }, 'contents of calls could not be stored; trying again');
        batchIds = new Set();
        await sleep(LOGGED_RETRY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    }
    batchIds = new Set();
  }

  function sweep(): void {
    unsweptChars = 0;
    const most = { workspace_chars: limits.logged_workspace_chars_max, chars: limits.logged_contents_chars_max };
    sweeping ??= store
      .sweep(at(nowMs()), most)
      .catch((err) => log.warn({ err }, 'expired contents of calls could not be deleted; trying again'))
      .finally(() => {
        sweeping = undefined;
      });
  }

  async function read(row: LoggedContentRow): Promise<LoggedContent | undefined> {
    try {
      return await opened(vault, row);
    } catch (err) {
      log.warn({ err, generation_id: row.id }, 'the content of a call cannot be read and is treated as missing');
      return undefined;
    }
  }

  return {
    keep(call, content) {
      let json: string;
      try {
        json = JSON.stringify(content);
      } catch (err) {
        giveUp(call, 'build', WHY.build, err);
        return;
      }
      queue.set(call.id, { ...call, json });
      queueChars += json.length;
      for (const [id, oldest] of queue) {
        const isFull = queue.size > limits.logged_queue_entries_max || queueChars > limits.logged_queue_chars_max;
        if (!isFull) break;
        if (batchIds.has(id)) continue;
        take(id);
        giveUp(oldest, 'overflow');
      }
      writing ??= write().finally(() => {
        writing = undefined;
      });
    },

    keepStub: (call, reason) => giveUp(call, 'build', reason),

    async find(id, principal) {
      if (!isStorable(id)) return undefined;
      const { organization_id } = principal;
      // A content is queued in a later turn than its answer.
      if (!queue.has(id)) await nextTurn();
      const waiting = queue.get(id) ?? stubs.get(id);
      if (waiting !== undefined && waiting.organization_id === organization_id) {
        return mayRead(principal, waiting) ? (JSON.parse(waiting.json) as LoggedContent) : undefined;
      }
      const row = await store.find(id, organization_id, at(nowMs()));
      return row !== undefined && mayRead(principal, row) ? read(row) : undefined;
    },

    async *list({ workspace_id, since, limit }) {
      let after: ContentPlace | undefined;
      for (let left = limit; left > 0; ) {
        const pageSize = Math.min(left, REPLAY_PAGE_ROWS);
        const page = await store.list({ workspace_id, since, now: at(nowMs()), limit: pageSize, after });
        for (const row of page) {
          const content = await read(row);
          if (content !== undefined && content.not_kept === undefined) yield { id: row.id, content };
        }
        if (page.length < pageSize) return;
        after = page.at(-1);
        left -= page.length;
      }
    },

    start() {
      sweep();
      sweeps = setInterval(sweep, LOGGED_SWEEP_MS).unref();
    },

    async stop() {
      clearInterval(sweeps);
      stopping.abort();
      const late = sleep(LOGGED_STOP_MS_MAX, undefined, { ref: false });
      await Promise.race([Promise.all([writing, sweeping]), late]);
      loseAll();
    },
  };
}
