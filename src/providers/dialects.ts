import type { Wire } from '../schemas/inner.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import { bedrockConverse } from './bedrock-converse/index.ts';
import { cohereChat } from './cohere-chat/index.ts';
import type { ChatDialect } from './dialect.ts';
import { geminiGenerateContent } from './gemini-generate-content/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';
import { withToolTemplate } from './tool-template/dialect.ts';

/** The dialect of each wire that there is one for. A provider of another wire is listed, and reported as not available. */
export const dialects: ReadonlyMap<Wire, ChatDialect> = new Map<Wire, ChatDialect>(
  [openaiChat, anthropicMessages, openaiResponses, geminiGenerateContent, bedrockConverse, cohereChat].map(
    (dialect) => [dialect.wire, withToolTemplate(dialect)],
  ),
);
