import type { EndpointParameter } from '../../schemas/endpoint.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { ModelName, WireFacts, WorstCase } from '../dialect.ts';
import { toolUses } from '../shared/provider-tools.ts';
import { aboveThinking, commonWorstCase, unseenMediaBy } from '../shared/worst-case.ts';
import { modelFacts } from './model-facts.ts';

const factsOf = ({ upstream_model: upstreamModel, quirks }: ModelName) =>
  modelFacts(upstreamModel, quirks.google_cloud === true);

/** The parameters that this wire lacks: the row of a provider with several wires, as Vertex AI's, lists what any of them accepts. */
function lackingParameters(model: ModelName): readonly EndpointParameter[] {
  const { has_penalties: hasPenalties, has_logprobs: hasLogprobs } = factsOf(model);
  return [
    'parallel_tool_calls',
    'verbosity',
    ...(hasPenalties ? [] : (['frequency_penalty', 'presence_penalty'] as const)),
    ...(hasLogprobs ? [] : (['logprobs', 'top_logprobs'] as const)),
  ];
}

export const facts: WireFacts = {
  defaultQuirks: () => ({}),
  modelQuirks: () => ({}),
  lackingParameters,
  variesReasoningFields: false,
  refusesUnsupported: false,
  cachesUnasked: true,
  takesSeveralChoices: false,
  takesZeroOutput: false,
  takesAddresses: false,
  listsModels: true,
  takesSearchOptions: false,
  messagesMax: undefined,
  isSearchTool: () => false,
  carriesState: () => true,
  leastOutput: aboveThinking,
};

/** The number of kinds of tools other than the client's functions. Each kind is a member; one object may have several. */
function toolKinds(tools: readonly JsonValue[]): number {
  const kinds = tools.flatMap((tool) => Object.keys((tool as JsonObject | null) ?? {}));
  return kinds.filter((kind) => kind !== 'functionDeclarations' && kind !== 'function_declarations').length;
}

export const worstCase: WorstCase = {
  ...commonWorstCase,
  // A video, or an address that Google reads by itself, whatever type the part declares.
  unseenMedia: unseenMediaBy(/"mimeType":"video\/|"fileUri":"/i),
  toolUses: (request) => toolUses(request, toolKinds),
  // Before Gemini 3 an answer is billed once, however often it searched (https://ai.google.dev/gemini-api/docs/pricing).
  billsOneSearch(model) {
    const { generation } = factsOf(model);
    return generation === undefined || generation < 3;
  },
};
