import type { WireFacts } from '../dialect.ts';
import { aboveThinking } from '../shared/worst-case.ts';
import { cohereModelQuirks } from './model-quirks.ts';

export const facts: WireFacts = {
  defaultQuirks: () => ({}),
  modelQuirks: cohereModelQuirks,
  lackingParameters: () => [],
  variesReasoningFields: false,
  refusesUnsupported: false,
  cachesUnasked: true,
  takesSeveralChoices: false,
  takesZeroOutput: false,
  takesAddresses: true,
  listsModels: true,
  takesSearchOptions: false,
  messagesMax: undefined,
  isSearchTool: () => false,
  carriesState: () => true,
  leastOutput: aboveThinking,
};
