/** A gateway for tests that use official SDKs as its clients: every model of the sandbox at every wire. */
import OpenAI from 'openai';
import { afterEach, beforeEach, expect, type MockInstance, vi } from 'vitest';
import { sandboxModels, sandboxProviders, sandboxVectorModels } from '../../sandbox/catalog.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Wire } from '../../src/schemas/inner.ts';
import { checkStreamOf } from '../grammar/check-stream.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { inTier } from '../tier.ts';

export const wires: readonly Wire[] = [...dialects.keys()];

/**
 * The wires over which an official client is tested. The first tier uses one that is not the client's own, so that
 * every answer is translated; the wire's own tests compare its content.
 */
export function clientWires(own: 'openai' | 'anthropic'): readonly Wire[] {
  return inTier([own === 'openai' ? 'anthropic-messages' : 'openai-chat'], wires);
}

/** Features that a wire lacks, for any client. */
export const wireFacts = {
  /** Disabling parallel tool calls: these wires have no field for it. */
  calls_in_parallel_always: new Set<Wire>(['gemini-generate-content', 'bedrock-converse', 'cohere-chat']),
  /** The count of reasoning tokens: these wires do not report it. */
  reasoning_uncounted: new Set<Wire>(['bedrock-converse', 'cohere-chat']),
  /** The sandbox's model of this wire thinks without a request for it: eight tokens for `Good morning, world.` */
  thinks_unasked: new Set<Wire>(['gemini-generate-content']),
  /** Stop sequences: this wire has none, and they are ignored. */
  stops_nowhere: new Set<Wire>(['openai-responses']),
};

export interface SdkGateway {
  gateway: TestGateway;
  sandbox: Sandbox;
  stop(): Promise<void>;
}

/** The name of a sandbox model (`echo`, or with faults `story;tokens=900`) at the upstream that speaks a wire. */
export function modelOf(wire: Wire, slug: string): string {
  return `${wire}/${slug.replaceAll(/[;=]/g, '-')}`;
}

/**
 * Starts a gateway in front of a sandbox of its own. `faulty` are additional models with faults, `settings` are added
 * to the configuration.
 */
export async function startSdkGateway(faulty: readonly string[] = [], settings: object = {}): Promise<SdkGateway> {
  const sandbox = await startSandbox();
  const providers = sandboxProviders(sandbox.url);
  const file = {
    bundled_catalog: false,
    providers,
    models: { ...sandboxModels, ...sandboxVectorModels, ...modelsAt(providers, faulty) },
    ledger: { journal_sync: 'os' },
    ...settings,
  };
  const gateway = await startGateway({ yaml: JSON.stringify(file) });
  return {
    gateway,
    sandbox,
    async stop() {
      await gateway.stop();
      await sandbox.stop();
    },
  };
}

function modelsAt(providers: ReturnType<typeof sandboxProviders>, faulty: readonly string[]): Record<string, object> {
  const models: Record<string, object> = {};
  for (const wire of wires) {
    const [provider] = Object.entries(providers).find(([, { dialect }]) => dialect === wire)!;
    for (const [id, row] of Object.entries(sandboxModels)) {
      const endpoint = row.endpoints.find((one) => one.provider === provider);
      const slug = id.slice('sandbox/'.length).replace(/^(gemini|responses|bedrock|cohere)-/, '');
      if (endpoint === undefined || slug === 'fallback' || slug === 'break-off') continue;
      models[modelOf(wire, slug)] = { ...row, endpoints: [endpoint] };
      for (const name of faulty) {
        const [plain, ...settings] = name.split(';');
        const upstreamModel = [endpoint.upstream_model, ...settings].join(';');
        if (plain === slug)
          models[modelOf(wire, name)] = { ...row, endpoints: [{ ...endpoint, upstream_model: upstreamModel }] };
      }
    }
  }
  return models;
}

/** The violations of a grammar since the last test. */
const broken: string[] = [];
const END = 'data: [DONE]\n\n';

/**
 * For an SDK's `fetch`: checks each stream that ends against the grammar of its API. `refuseWarnings` fails the test of
 * a violation.
 */
export const checkedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  if (!isStream || response.body === null) return response;
  const path = new URL(String(input)).pathname.replace(/^(\/api)?\/v1/, '');
  const decoder = new TextDecoder();
  let text = '';
  let isChecked = false;
  const check = () => {
    isChecked = true;
    try {
      checkStreamOf(path, init?.body, text);
    } catch (error) {
      broken.push(String(error));
    }
  };
  const reading = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(bytes, control) {
      text += decoder.decode(bytes, { stream: true });
      // Some SDKs read no further than this.
      if (text.endsWith(END)) check();
      control.enqueue(bytes);
    },
    flush() {
      if (!isChecked) check();
    },
  });
  return new Response(response.body.pipeThrough(reading), response);
};

/**
 * Fails each test of the file in which an SDK warns, on the console or as a warning of the process, or a stream
 * violates its grammar.
 */
export function refuseWarnings(): void {
  const spies: MockInstance[] = [];
  const warned: string[] = [];
  const note = (...words: unknown[]) => void warned.push(words.map(String).join(' '));
  beforeEach(() => {
    warned.length = 0;
    broken.length = 0;
    spies.push(
      vi.spyOn(console, 'warn').mockImplementation(note),
      vi.spyOn(console, 'error').mockImplementation(note),
      vi.spyOn(process, 'emitWarning').mockImplementation((warning) => note(warning)),
    );
  });
  afterEach(() => {
    for (const spy of spies.splice(0)) spy.mockRestore();
    expect([...warned, ...broken]).toEqual([]);
  });
}

/** OpenAI's SDK as a client of a gateway, without retries. Its streams are checked against their grammar. */
export function openaiOf(
  { base_url, key }: TestGateway,
  options: ConstructorParameters<typeof OpenAI>[0] = {},
): OpenAI {
  return new OpenAI({ baseURL: base_url, apiKey: key, maxRetries: 0, fetch: checkedFetch, ...options });
}
