/** A scripted provider: it reads a request to its end, and writes the prepared answer. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Wire } from '../../src/schemas/inner.ts';

const UPSTREAM_MODELS: Readonly<Partial<Record<Wire, string>>> = {
  'bedrock-converse': 'anthropic.claude-sonnet-4-20250514-v1:0',
  'gemini-generate-content': 'gemini-2.5-flash',
};
const WIRES: readonly Wire[] = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'gemini-generate-content',
  'bedrock-converse',
  'cohere-chat',
];
/** Keys of an AWS account, so that requests are signed. */
const AWS_KEYS = JSON.stringify({ accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'x'.repeat(40), region: 'us-east-1' });

/** A provider of each wire and a model of it, `scripted/<wire>`, in the form of gateway.yaml. */
export function declaredProviders(url: string) {
  const providers = Object.fromEntries(
    WIRES.map((dialect) => [
      `scripted-${dialect}`,
      {
        name: `Scripted ${dialect}`,
        dialect,
        base_url: url,
        ...(dialect === 'bedrock-converse' ? { api_key: AWS_KEYS } : {}),
      },
    ]),
  );
  const models = Object.fromEntries(
    WIRES.map((dialect) => [
      `scripted/${dialect}`,
      {
        name: `Scripted ${dialect}`,
        context_length: 1_000_000_000,
        input_modalities: ['text', 'image', 'file'],
        output_modalities: ['text'],
        endpoints: [
          {
            provider: `scripted-${dialect}`,
            upstream_model: UPSTREAM_MODELS[dialect] ?? 'scripted',
            pricing: { prompt: 0.1, completion: 0.4 },
            max_completion_tokens: 16_384,
          },
        ],
      },
    ]),
  );
  return {
    providers: {
      ...providers,
      'scripted-vectors': {
        name: 'Scripted vectors',
        dialect: 'openai-chat',
        embeddings_dialect: 'openai-embeddings',
        base_url: url,
      },
    },
    models: {
      ...models,
      'scripted/vectors': {
        name: 'Scripted vectors',
        context_length: 1_000_000_000,
        input_modalities: ['text'],
        output_modalities: ['embeddings'],
        endpoints: [
          { provider: 'scripted-vectors', upstream_model: 'scripted', pricing: { prompt: 0.1, completion: 0 } },
        ],
      },
    },
  };
}

export async function startProvider(): Promise<{ url: string; answer(next: Buffer): void; stop(): void }> {
  let answer = Buffer.alloc(0);
  const server = createServer((request, { socket }) => {
    request.resume();
    request.on('end', () => socket?.end(answer));
    socket?.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answer(next) {
      answer = Buffer.from(next);
    },
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
