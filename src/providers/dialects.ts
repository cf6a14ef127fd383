import type { Wire } from '../schemas/inner.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import { bedrockConverse } from './bedrock-converse/index.ts';
import { cohereChat } from './cohere-chat/index.ts';
import type { ChatDialect } from './dialect.ts';
import { geminiGenerateContent } from './gemini-generate-content/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';

const byWire: Readonly<Record<Wire, ChatDialect>> = {
  'openai-chat': openaiChat,
  'anthropic-messages': anthropicMessages,
  'openai-responses': openaiResponses,
  'gemini-generate-content': geminiGenerateContent,
  'bedrock-converse': bedrockConverse,
  'cohere-chat': cohereChat,
};

/** The dialect of a wire. */
export function dialectOf(wire: Wire): ChatDialect {
  return byWire[wire];
}

/** The dialect of each wire, for names read from a configuration, which may name an unknown wire. */
export const dialects: ReadonlyMap<Wire, ChatDialect> = new Map(
  Object.values(byWire).map((dialect) => [dialect.wire, dialect]),
);
