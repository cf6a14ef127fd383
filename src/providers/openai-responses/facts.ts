import type { EndpointParameter } from '../../schemas/endpoint.ts';
import type { WireFacts } from '../dialect.ts';
import { aboveThinking } from '../shared/worst-case.ts';
import { responsesModelQuirks } from './model-quirks.ts';
import { OUTPUT_TOKENS_MIN } from './request.ts';

/** https://platform.openai.com/docs/api-reference/responses/create */
const LACKING: readonly EndpointParameter[] = [
  'stop',
  'seed',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'prediction',
  'top_k',
  'min_p',
  'repetition_penalty',
];

export const facts: WireFacts = {
  defaultQuirks: () => ({}),
  modelQuirks: responsesModelQuirks,
  lackingParameters: () => LACKING,
  variesReasoningFields: false,
  refusesUnsupported: true,
  cachesUnasked: true,
  takesSeveralChoices: false,
  takesZeroOutput: false,
  takesAddresses: true,
  listsModels: true,
  takesSearchOptions: true,
  messagesMax: undefined,
  isSearchTool: ({ type }) => String(type).startsWith('web_search'),
  carriesState: () => true,
  leastOutput: (body, request) => Math.max(aboveThinking(body, request), OUTPUT_TOKENS_MIN),
};
