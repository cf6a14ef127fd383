import type { Wire } from '../schemas/inner.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import { bedrockConverse } from './bedrock-converse/index.ts';
import { cohereChat } from './cohere-chat/index.ts';
import type { ChatDialect } from './dialect.ts';
import { geminiGenerateContent } from './gemini-generate-content/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';

/** The dialect of each wire that there is one for. A provider of another wire is listed, and reported as not available. */
export const dialects: ReadonlyMap<Wire, ChatDialect> = new Map<Wire, ChatDialect>([
  ['openai-chat', openaiChat],
  ['anthropic-messages', anthropicMessages],
  ['openai-responses', openaiResponses],
  ['gemini-generate-content', geminiGenerateContent],
  ['bedrock-converse', bedrockConverse],
  ['cohere-chat', cohereChat],
]);
