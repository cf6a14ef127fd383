import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import Type from 'typebox';
import type { Vault } from '../../accounts/vault.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import { zeroRetention } from '../../guardrails/policy/restrictions.ts';
import { structureBytes } from '../../http/memory.ts';
import type { Principal } from '../../http/principal.ts';
import type { StoreWait } from '../../http/store-wait.ts';
import type { Call } from '../../inference/call.ts';
import { limits } from '../../limits.ts';
import type { MemoryBudget } from '../../providers/transport/room.ts';
import { append } from '../../schemas/append.ts';
import { DAY_MS } from '../../schemas/budget.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { ResponsesRequestBody } from '../../schemas/responses.ts';
import { isStorable } from '../../schemas/text.ts';
import type { StoredResponseRow, StoredResponseStore } from '../../storage/stored-responses.ts';
import { type JsonPart, joinParts, partsChars } from '../shared/json-parts.ts';
import type { OutputItem } from './items.ts';

/** How long an answer waits to be stored. Afterwards it is reported as not stored. */
const STORED_RESPONSE_WRITE_MS_MAX = 5_000;
const STORED_RESPONSE_SWEEP_MS = 600_000;

/** The most bytes that a character takes in UTF-8. */
const BYTES_PER_CHAR = 3;

const deflate = promisify(deflateRaw);
const inflate = promisify(inflateRaw);

/** A stored response, with its whole conversation as items. */
export interface StoredResponse {
  input: JsonObject[];
  /** Includes reasoning that was hidden from the client. */
  output: JsonObject[];
  /** The Response object as it was sent to the client. */
  response: JsonObject;
}

/** A finished answer as JSON: the Response object, and the items that a continuing request needs. */
export interface FinishedResponse {
  response: readonly JsonPart[];
  output: readonly OutputItem[];
}

/** The call whose response is stored, under the id of its generation. */
export type KeptCall = Pick<Call, 'generation_id' | 'principal' | 'room'>;

/** Stores responses of requests with `store`, for the workspace of their key. */
export interface StoredResponses {
  /**
   * The full input of a request that stores its response or continues another one, including the earlier conversation; undefined for other
   * requests. Throws a `GatewayError` 400 if the response must not be stored, or the former one is unknown.
   */
  inputOf(
    body: ResponsesRequestBody,
    principal: Principal,
    room: MemoryBudget | undefined,
    storeWait?: StoreWait,
  ): Promise<JsonObject[] | undefined>;
  /** Stores a response. Resolves to whether it was stored; never rejects. */
  keep(call: KeptCall, input: readonly JsonObject[], finished: FinishedResponse): Promise<boolean>;
  find(
    id: string,
    principal: Principal,
    room?: MemoryBudget,
    storeWait?: StoreWait,
  ): Promise<StoredResponse | undefined>;
  /** Resolves to whether there was one. */
  delete(id: string, principal: Principal): Promise<boolean>;
  /** Starts deleting expired responses, also if nothing is stored any more. */
  start(): void;
  stop(): Promise<void>;
}

export interface StoredResponsesOptions {
  store: StoredResponseStore;
  vault: Vault;
  retention_days: number;
  nowMs(): number;
  /** Default: `STORED_RESPONSE_WRITE_MS_MAX`. */
  write_ms_max?: number;
  log: { warn(facts: object, message: string): void };
}

/** The input as items. A text becomes a user message. */
function inputItems(input: ResponsesRequestBody['input']): JsonObject[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  return (input ?? []) as unknown as JsonObject[];
}

/** The path of one response. */
export const ResponseParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 100 }) });

/** The error of a response that does not exist, belongs to another workspace, or cannot exist since nothing is stored. */
export function notStored(): GatewayError {
  return new GatewayError(404, 'No such response is stored in this workspace');
}

/** Compresses a text. The result states the original length, so that a reader can reserve memory. */
async function pack(json: string): Promise<string> {
  return `${json.length}.${(await deflate(json)).toString('base64')}`;
}

function unpack(text: string): { chars: number; deflated: Buffer } {
  const dot = text.indexOf('.');
  const chars = Number(text.slice(0, dot));
  if (dot <= 0 || !Number.isSafeInteger(chars))
    throw new Error('a stored response has a format that this version cannot read');
  return { chars, deflated: Buffer.from(text.slice(dot + 1), 'base64') };
}

/** The context of encryption, which binds a response to its row. */
const placeOf = (id: string, { workspace_id }: Principal) => `response ${workspace_id} ${id}`;

/** Makes the store of responses. Each row has a whole conversation, compressed and encrypted, so that deletions are independent. */
export function createStoredResponses(options: StoredResponsesOptions): StoredResponses {
  const { store, vault, retention_days, nowMs, log } = options;
  const { write_ms_max = STORED_RESPONSE_WRITE_MS_MAX } = options;
  const at = (ms: number) => new Date(ms).toISOString();
  let sweeping: Promise<void> | undefined;
  let sweeps: NodeJS.Timeout | undefined;

  function sweep(): void {
    sweeping ??= store
      .sweep(at(nowMs()), limits.stored_responses_chars_max)
      .catch((err) => log.warn({ err }, 'expired stored responses could not be deleted; trying again'))
      .finally(() => {
        sweeping = undefined;
      });
  }

  /** Inserts a row within a time limit. A row that the store inserts later is deleted again, since the answer says that it is not stored. */
  async function insert(row: StoredResponseRow): Promise<void> {
    const waiting = new AbortController();
    const writing = store.insert(row);
    const late = sleep(write_ms_max, 'late', { signal: waiting.signal });
    late.catch(() => undefined);
    try {
      if ((await Promise.race([writing, late])) !== 'late') return;
    } finally {
      waiting.abort();
    }
    const { id, workspace_id } = row;
    writing
      .then(() => store.delete(id, workspace_id, at(nowMs())))
      .catch((err) =>
        log.warn({ err, generation_id: id }, 'a response was stored after its deletion and may stay until it expires'),
      );
    throw new Error(`the store did not answer within ${write_ms_max} ms`);
  }

  async function find(
    id: string,
    principal: Principal,
    room?: MemoryBudget,
    storeWait?: StoreWait,
  ): Promise<StoredResponse | undefined> {
    if (!isStorable(id)) return undefined;
    const reading = store.find(id, principal.workspace_id, at(nowMs()));
    const sealed = await (storeWait === undefined ? reading : storeWait.within(reading));
    if (sealed === undefined) return undefined;
    await room?.take(sealed.length * limits.body_copies);
    const unreadable = (err: unknown) => {
      log.warn({ err, generation_id: id }, 'a stored response cannot be read and is treated as missing');
      return undefined;
    };
    let packed: { chars: number; deflated: Buffer };
    try {
      packed = unpack(vault.open(sealed, placeOf(id, principal)));
    } catch (err) {
      return unreadable(err);
    }
    // Few bytes may decompress to many: reserve memory first.
    await room?.take(packed.chars * limits.body_copies);
    let json: string;
    try {
      const bytes = await inflate(packed.deflated, { maxOutputLength: packed.chars * BYTES_PER_CHAR });
      json = bytes.toString('utf8');
    } catch (err) {
      return unreadable(err);
    }
    await room?.take(structureBytes(json));
    return JSON.parse(json) as StoredResponse;
  }

  function admit({ provider }: ResponsesRequestBody, { guardrails }: Principal): void {
    const reason = zeroRetention(provider, guardrails);
    if (reason !== undefined) throw invalidField('store', `must be false: ${reason} forbids storing`);
  }

  return {
    async inputOf(body, principal, room, storeWait) {
      const { previous_response_id, input } = body;
      if (body.store === true) admit(body, principal);
      const items = inputItems(input);
      if (previous_response_id == null) return body.store === true ? items : undefined;
      const former = await find(previous_response_id, principal, room, storeWait);
      if (former === undefined) {
        throw invalidField('previous_response_id', 'must be the id of a response that is stored in this workspace');
      }
      const all = [...former.input, ...former.output, ...items];
      if (all.length > limits.messages_max) {
        throw new GatewayError(
          400,
          `previous_response_id: the conversation has more than ${limits.messages_max} items`,
        );
      }
      return all;
    },

    async keep({ generation_id: id, principal, room }, input, { response, output }) {
      const items = output.flatMap((item, at) => (at === 0 ? item : [',', ...item]));
      const parts: JsonPart[] = ['{"input":', { value: input as JsonObject[] }, ',"output":['];
      append(parts, items);
      parts.push('],"response":');
      append(parts, response);
      parts.push('}');
      const isTooLong = (chars: number) => {
        if (chars <= limits.stored_response_chars_max) return false;
        log.warn({ generation_id: id, chars }, 'a response is too long to be stored');
        return true;
      };
      // Decided by its approximate length first, so that no longer text is made.
      if (isTooLong(partsChars(parts, limits.stored_response_chars_max + 1))) return false;
      const json = joinParts(parts);
      if (isTooLong(json.length)) return false;
      try {
        // Memory for the compressed, encoded, encrypted and sent copies.
        await room?.take(json.length * limits.body_copies);
        const { workspace_id } = principal;
        const sealed = vault.seal(await pack(json), placeOf(id, principal));
        const expiresAt = at(nowMs() + retention_days * DAY_MS);
        await insert({ id, workspace_id, sealed, expires_at: expiresAt });
        return true;
      } catch (err) {
        log.warn({ err, generation_id: id }, 'a response could not be stored; its answer has store: false');
        return false;
      }
    },

    find,
    async delete(id, { workspace_id }) {
      return isStorable(id) && store.delete(id, workspace_id, at(nowMs()));
    },
    start() {
      sweep();
      sweeps = setInterval(sweep, STORED_RESPONSE_SWEEP_MS).unref();
    },
    async stop() {
      clearInterval(sweeps);
      await sweeping;
    },
  };
}
