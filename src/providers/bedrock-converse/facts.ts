import { anthropicModelQuirks } from '../anthropic-messages/model-quirks.ts';
import type { WireFacts, WorstCase } from '../dialect.ts';
import { aboveThinking, commonWorstCase, unseenMediaBy } from '../shared/worst-case.ts';

export const facts: WireFacts = {
  defaultQuirks: () => ({}),
  modelQuirks: anthropicModelQuirks,
  lackingParameters: () => [],
  variesReasoningFields: false,
  refusesUnsupported: false,
  cachesUnasked: false,
  takesSeveralChoices: false,
  takesZeroOutput: false,
  takesAddresses: false,
  listsModels: false,
  takesSearchOptions: false,
  messagesMax: undefined,
  isSearchTool: () => false,
  carriesState: () => true,
  leastOutput: aboveThinking,
};

export const worstCase: WorstCase = {
  ...commonWorstCase,
  unseenMedia: unseenMediaBy(/"video":\{"format":"[^"]*","source":/),
};
