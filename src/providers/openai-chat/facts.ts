import type { WireFacts } from '../dialect.ts';
import { aboveThinking } from '../shared/worst-case.ts';

/** Only OpenAI's own models read `name` on this wire, not those that others host (specification, Message: `name`). */
const READS_NAMES = /^openai\/(?!gpt-oss)/;

export const facts: WireFacts = {
  defaultQuirks: (model) => (READS_NAMES.test(model) ? {} : { names_in_text: true }),
  modelQuirks: () => ({}),
  lackingParameters: () => [],
  variesReasoningFields: true,
  refusesUnsupported: true,
  cachesUnasked: true,
  takesSeveralChoices: true,
  takesZeroOutput: false,
  takesAddresses: true,
  listsModels: true,
  takesSearchOptions: true,
  messagesMax: undefined,
  isSearchTool: () => false,
  carriesState: ({ google_signatures: googleSignatures, replay_reasoning: replayReasoning }) =>
    googleSignatures === true || replayReasoning !== undefined,
  leastOutput: aboveThinking,
};
