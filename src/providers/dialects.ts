import type { Wire } from '../schemas/inner.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import { bedrockConverse } from './bedrock-converse/index.ts';
import { cohereChat } from './cohere-chat/index.ts';
import type { ChatDialect } from './dialect.ts';
import { geminiGenerateContent } from './gemini-generate-content/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';
import { withToolTemplate } from './tool-template/dialect.ts';

const byWire: Readonly<Record<Wire, ChatDialect>> = {
  'openai-chat': withToolTemplate(openaiChat),
  'anthropic-messages': withToolTemplate(anthropicMessages),
  'openai-responses': withToolTemplate(openaiResponses),
  'gemini-generate-content': withToolTemplate(geminiGenerateContent),
  'bedrock-converse': withToolTemplate(bedrockConverse),
  'cohere-chat': withToolTemplate(cohereChat),
};

/** The dialect of a wire. */
export function dialectOf(wire: Wire): ChatDialect {
  return byWire[wire];
}

/** The dialect of each wire, for names read from a configuration, which may name an unknown wire. */
export const dialects: ReadonlyMap<Wire, ChatDialect> = new Map(
  Object.values(byWire).map((dialect) => [dialect.wire, dialect]),
);
