/** Answers of a hostile or broken upstream: `n` parts of one kind, for each wire. */

import { messagesFloods } from './floods/anthropic-messages.ts';
import { converseFloods } from './floods/bedrock-converse.ts';
import { cohereFloods } from './floods/cohere-chat.ts';
import type { Flood } from './floods/flood.ts';
import { geminiFloods } from './floods/gemini-generate-content.ts';
import { chatFloods } from './floods/openai-chat.ts';
import { responsesFloods } from './floods/openai-responses.ts';

/** Every kind of part of every wire. */
export const floods: readonly Flood[] = [
  ...chatFloods,
  ...messagesFloods,
  ...responsesFloods,
  ...geminiFloods,
  ...converseFloods,
  ...cohereFloods,
];
