import { hash } from 'node:crypto';
import { limits } from '../limits.ts';
import type { ChatRequest, Message } from '../schemas/inner.ts';
import { type Candidate, pricesOf } from './candidate.ts';

/** A conversation, as far as requests show that they belong to one. */
export interface Conversation {
  /** Unlike any other conversation's of the same account. */
  id: string;
}

function textOf({ content }: Message): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (part.type === 'text' ? part.text : part.type)).join('\n');
}

/** Text of a message as far as conversations are told apart by it: a prefix, and how long the whole is. */
function mark(message: Message | undefined): string {
  if (message === undefined) return '';
  const text = textOf(message);
  return `${text.length} ${text.slice(0, limits.conversation_chars_max)}`;
}

const isInstruction = ({ role }: Message) => role === 'system' || role === 'developer';

/** The conversation of a request: as the client names it, else by what it begins with (public service's documentation, "Prompt caching"). */
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

/** A hash in any case: part of a string that a client sent would hold the whole of it in memory. */
function idOf(told: string): Conversation {
  return { id: hash('sha256', told, 'base64url') };
}

/** Whether a cache at the endpoint makes the next turn of a conversation cheaper there. */
export function cachesCheaply(candidate: Candidate): boolean {
  const { input_cache_read: inputCacheRead, prompt } = pricesOf(candidate);
  return inputCacheRead !== undefined && prompt !== undefined && inputCacheRead < prompt;
}

/** Where conversations were answered lately. Bounded; times are given by the caller; what failed is not told. */
export interface Stickiness {
  isEmpty(): boolean;
  /** What the conversation was given under this name: an endpoint for a model, a model for a router. */
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
  const homes = new Map<string, { home: string; until_ms: number }>();
  const keyOf = ({ account, name, conversation }: HomeKey) => `${account}\n${name}\n${conversation}`;
  return {
    isEmpty: () => homes.size === 0,
    home(key, nowMs) {
      const known = homes.get(keyOf(key));
      return known !== undefined && known.until_ms > nowMs ? known.home : undefined;
    },
    keep(key, home, nowMs) {
      const written = keyOf(key);
      homes.delete(written);
      // Who was heard of longest ago leaves; a Map keeps the order of insertion.
      if (homes.size >= limits.sticky_conversations_max) homes.delete(homes.keys().next().value ?? '');
      homes.set(written, { home, until_ms: nowMs + limits.sticky_ms });
    },
  };
}
