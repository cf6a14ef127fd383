import { hash } from 'node:crypto';
import { limits } from '../limits.ts';
import type { ChatRequest, Message } from '../schemas/inner.ts';
import { type Candidate, pricesOf } from './candidate.ts';

/**
 * How long a silent conversation keeps its endpoint, how many conversations a process remembers, and the characters of a message
 * that identify one.
 */
export const STICKY_MS = 600_000;
export const STICKY_CONVERSATIONS_MAX = 50_000;
export const CONVERSATION_CHARS_MAX = 4_096;

/** A conversation that requests belong to, as far as they show it. */
export interface Conversation {
  /** Unique within an account. */
  id: string;
}

function textOf({ content }: Message): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (part.type === 'text' ? part.text : part.type)).join('\n');
}

/** The part of a message that identifies a conversation: its length and a prefix of its text. */
function mark(message: Message | undefined): string {
  if (message === undefined) return '';
  const text = textOf(message);
  return `${text.length} ${text.slice(0, CONVERSATION_CHARS_MAX)}`;
}

const isInstruction = ({ role }: Message) => role === 'system' || role === 'developer';

/** The conversation of a request: as the client names it, else by its beginning (public service's documentation, "Prompt caching"). */
export function conversationOf({
  session_id: sessionId,
  prompt_cache_key: promptCacheKey,
  messages,
}: ChatRequest): Conversation | undefined {
  if (sessionId) return idOf(`session ${sessionId}`);
  if (promptCacheKey) return idOf(`key ${promptCacheKey.slice(0, limits.session_id_chars_max)}`);
  const first = messages.find((message) => !isInstruction(message));
  if (first === undefined) return undefined;
  return idOf(`begin ${mark(messages.find(isInstruction))}\n${mark(first)}`);
}

/** Always a hash: a substring of a client's text would keep the whole text in memory. */
function idOf(text: string): Conversation {
  return { id: hash('sha256', text, 'base64url') };
}

/** Whether a prompt cache at the endpoint makes the next turn cheaper. */
export function cachesCheaply(candidate: Candidate): boolean {
  const { input_cache_read: inputCacheRead, prompt } = pricesOf(candidate);
  return inputCacheRead !== undefined && prompt !== undefined && inputCacheRead < prompt;
}

/** The endpoints or models that answered conversations recently. Bounded. The caller passes the time, and reports no failures. */
export interface Stickiness {
  isEmpty(): boolean;
  /** The conversation's value for this name: an endpoint of a model, a model of a router. */
  home(key: HomeKey, nowMs: number): string | undefined;
  keep(key: HomeKey, home: string, nowMs: number): void;
}

export interface HomeKey {
  account: string;
  /** A model's id, or a router's. */
  name: string;
  conversation: string;
}

export function createStickiness(): Stickiness {
  const entries = new Map<string, { value: string; until_ms: number }>();
  const keyOf = ({ account, name, conversation }: HomeKey) => `${account}\n${name}\n${conversation}`;
  return {
    isEmpty: () => entries.size === 0,
    home(key, nowMs) {
      const known = entries.get(keyOf(key));
      return known !== undefined && known.until_ms > nowMs ? known.value : undefined;
    },
    keep(key, home, nowMs) {
      const entryKey = keyOf(key);
      entries.delete(entryKey);
      // The least recently used entry is removed; a Map keeps the order of insertion.
      if (entries.size >= STICKY_CONVERSATIONS_MAX) entries.delete(entries.keys().next().value ?? '');
      entries.set(entryKey, { value: home, until_ms: nowMs + STICKY_MS });
    },
  };
}
