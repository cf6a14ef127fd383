/** The Vercel AI SDK as a client, with the provider packages of OpenAI (each of its APIs) and Anthropic, their base URLs at the gateway. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { afterAll, beforeAll, describe } from 'vitest';
import { type AiClient, testAiSdk } from './ai-sdk-rules.ts';
import { clientWires, refuseWarnings, type SdkGateway, startSdkGateway } from './sdk-gateway.ts';

let site: SdkGateway;
const clients: Record<string, () => AiClient> = {
  'openai.chat()': () => ({
    model: (name) => openai().chat(name),
    always: {},
    reasoning: { providerOptions: { openai: { reasoningEffort: 'high', forceReasoning: true } } },
    showsReasoning: () => false,
    shows_late_errors: false,
    sends_files: true,
  }),
  'openai(), which is Responses': () => ({
    model: (name) => openai()(name),
    // The service keeps no responses: this package then sends whole items instead of references to them.
    always: { providerOptions: { openai: { store: false } } },
    reasoning: {
      providerOptions: {
        openai: { store: false, reasoningEffort: 'high', reasoningSummary: 'auto', forceReasoning: true },
      },
    },
    showsReasoning: () => true,
    shows_late_errors: true,
    sends_files: true,
  }),
  'anthropic()': () => ({
    model: (name) => createAnthropic({ baseURL: site.gateway.base_url, apiKey: site.gateway.key })(name),
    // The package limits the output of models that it does not know to 4096 tokens, and warns of it.
    always: { maxOutputTokens: 8_000 },
    reasoning: { providerOptions: { anthropic: { thinking: { type: 'adaptive', display: 'summarized' } } } },
    showsReasoning: () => true,
    shows_late_errors: true,
    sends_files: true,
  }),
};

function openai() {
  return createOpenAI({ baseURL: site.gateway.base_url, apiKey: site.gateway.key });
}

beforeAll(async () => {
  site = await startSdkGateway();
});
afterAll(() => site.stop());
refuseWarnings();

describe.each(Object.entries(clients))('%s', (name, client) => {
  describe.each(clientWires(name === 'anthropic()' ? 'anthropic' : 'openai'))('over %s', (wire) => {
    testAiSdk(wire, client, () => site);
  });
});
