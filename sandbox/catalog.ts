import { bedrockModelPrefix } from './bedrock-converse.ts';
import { geminiModelPrefix } from './gemini-generate-content.ts';
import { MODEL_CONTEXT_TOKENS, MODEL_OUTPUT_TOKENS, modelsByName } from './models.ts';

/** An entry of the `providers` section of `gateway.yaml`. */
export interface ProviderRow {
  name: string;
  dialect: string;
  embeddings_dialect?: string;
  transcription_dialect?: string;
  base_url: string;
  data_policy: { training: boolean; retention: string };
  abort_stops_billing: boolean;
}

interface EndpointRow {
  provider: string;
  upstream_model: string;
  /** USD per million tokens, or per second of sound. */
  pricing:
    | { prompt: number; completion: number; input_cache_read: number; input_cache_write: number }
    | { audio_second: number };
  max_completion_tokens: number;
  quirks?: { prefill: true };
}

export interface ModelRow {
  name: string;
  description: string;
  created: number;
  context_length: number;
  input_modalities: string[];
  output_modalities: string[];
  tokenizer: string;
  endpoints: EndpointRow[];
}

// The second provider is more expensive, so that a fallback is visible in the cost.
const prices = {
  sandbox: { prompt: 0.1, completion: 0.4, input_cache_read: 0.025, input_cache_write: 0.1 },
  'sandbox-anthropic': { prompt: 0.2, completion: 0.8, input_cache_read: 0.02, input_cache_write: 0.25 },
};

/** A provider of one more wire, with models of its own: `sandbox/<name>-echo` and so on. */
interface ApartRow {
  name: string;
  dialect: string;
  /** Appended to the sandbox's address. */
  path: string;
  /** The provider's name of a model. On some wires the name decides what a model accepts. */
  upstream_model(slug: string): string;
}
const apart: Readonly<Record<string, ApartRow>> = {
  gemini: {
    name: 'Sandbox Gemini',
    dialect: 'gemini-generate-content',
    path: '/v1beta',
    upstream_model: (slug) => geminiModelPrefix + slug,
  },
  responses: { name: 'Sandbox Responses', dialect: 'openai-responses', path: '/v1', upstream_model: (slug) => slug },
  bedrock: {
    name: 'Sandbox Bedrock',
    dialect: 'bedrock-converse',
    path: '',
    upstream_model: (slug) => bedrockModelPrefix + slug,
  },
  cohere: { name: 'Sandbox Cohere', dialect: 'cohere-chat', path: '/v2', upstream_model: (slug) => slug },
};

const first_release_s = Date.UTC(2026, 0, 1) / 1000;

function endpoint(
  provider: string,
  upstream_model: string,
  pricing: EndpointRow['pricing'] = prices.sandbox,
): EndpointRow {
  return { provider, upstream_model, pricing, max_completion_tokens: MODEL_OUTPUT_TOKENS };
}

function model(slug: string, description: string, endpoints: EndpointRow[]): ModelRow {
  return {
    name: `Sandbox ${slug}`,
    description,
    created: first_release_s,
    context_length: MODEL_CONTEXT_TOKENS,
    input_modalities: ['text', 'image', 'file'],
    output_modalities: ['text'],
    tokenizer: 'Other',
    endpoints,
  };
}

function atBoth(slug: string, description: string, first: string, second: string): ModelRow {
  const dearer = endpoint('sandbox-anthropic', second, prices['sandbox-anthropic']);
  return model(slug, description, [endpoint('sandbox', first), dearer]);
}

/** Providers of embeddings only. */
const vectors: Readonly<
  Record<string, { name: string; embeddings_dialect: string; path: string; prefix: string; takes_images: boolean }>
> = {
  voyage: {
    name: 'Sandbox Voyage',
    embeddings_dialect: 'voyage-embeddings',
    path: '/voyage/v1',
    prefix: '',
    takes_images: false,
  },
  jina: {
    name: 'Sandbox Jina',
    embeddings_dialect: 'jina-embeddings',
    path: '/jina/v1',
    prefix: '',
    takes_images: true,
  },
  vertex: {
    name: 'Sandbox Vertex',
    embeddings_dialect: 'vertex-embeddings',
    path: '/vertex/v1',
    prefix: 'text-embedding.',
    takes_images: false,
  },
  'vertex-content': {
    name: 'Sandbox Vertex Content',
    embeddings_dialect: 'vertex-embeddings',
    path: '/vertex/v1',
    prefix: 'embedding-maas.',
    takes_images: true,
  },
  titan: {
    name: 'Sandbox Titan',
    embeddings_dialect: 'bedrock-embeddings',
    path: '/bedrock-vectors',
    prefix: 'titan-embed-text-v2.',
    takes_images: false,
  },
};

/** Providers of transcriptions only. */
const speech: Readonly<Record<string, { name: string; path: string }>> = {
  deepgram: { name: 'Sandbox Deepgram', path: '/deepgram/v1' },
  elevenlabs: { name: 'Sandbox ElevenLabs', path: '/elevenlabs/v1' },
  assemblyai: { name: 'Sandbox AssemblyAI', path: '/assemblyai/v2' },
};

/** The providers of a running sandbox, in the form of the `providers` section of `gateway.yaml`. */
export function sandboxProviders(url: string): Record<string, ProviderRow> {
  const shared = {
    base_url: `${url}/v1`,
    data_policy: { training: false, retention: 'none' },
    abort_stops_billing: true,
  };
  return {
    sandbox: { name: 'Sandbox', dialect: 'openai-chat', ...shared },
    'sandbox-anthropic': { name: 'Sandbox Anthropic', dialect: 'anthropic-messages', ...shared },
    ...Object.fromEntries(
      Object.entries(apart).map(([short, { name, dialect, path }]) => [
        `sandbox-${short}`,
        { name, dialect, ...shared, base_url: url + path },
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(vectors).map(([short, { name, embeddings_dialect, path }]) => [
        `sandbox-${short}`,
        { name, dialect: 'openai-chat' as const, embeddings_dialect, ...shared, base_url: url + path },
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(speech).map(([short, { name, path }]) => [
        `sandbox-${short}`,
        {
          name,
          dialect: 'openai-chat' as const,
          transcription_dialect: `${short}-transcription`,
          ...shared,
          base_url: url + path,
        },
      ]),
    ),
  };
}

/** A model whose first endpoint breaks off and whose second, more expensive endpoint continues a given text. */
function brokenOff(): ModelRow {
  const goesOn = endpoint('sandbox-anthropic', 'story', prices['sandbox-anthropic']);
  return model(
    'break-off',
    'Its first endpoint breaks off in the middle of a story; the second continues it, or sends it whole.',
    [endpoint('sandbox', 'fail-mid-stream'), { ...goesOn, quirks: { prefill: true } }],
  );
}

/** Every model at the first two providers, again at each other provider, and models whose first endpoint always fails. The form is that of the `models` section. */
export const sandboxModels: Record<string, ModelRow> = {
  ...Object.fromEntries(
    Object.entries(modelsByName).flatMap(([slug, { description }]) => [
      [`sandbox/${slug}`, atBoth(slug, description, slug, slug)],
      ...Object.entries(apart).map(([short, { upstream_model }]) => [
        `sandbox/${short}-${slug}`,
        model(`${short} ${slug}`, description, [endpoint(`sandbox-${short}`, upstream_model(slug))]),
      ]),
    ]),
  ),
  'sandbox/fallback': atBoth('fallback', 'Its first endpoint always fails; the second answers.', 'fail-503', 'echo'),
  'sandbox/break-off': brokenOff(),
};

function vectorModel(slug: string, description: string, endpoints: EndpointRow[], takes_images = true): ModelRow {
  return {
    ...model(slug, description, endpoints),
    input_modalities: takes_images ? ['text', 'image'] : ['text'],
    output_modalities: ['embeddings'],
  };
}

const vectorPrices = { prompt: 0.02, completion: 0, input_cache_read: 0.02, input_cache_write: 0.02 };
const dearVectorPrices = { ...vectorPrices, prompt: 0.04 };

function vectorEndpoint(provider: string, upstream_model: string, pricing = vectorPrices): EndpointRow {
  return endpoint(provider, upstream_model, pricing);
}

/** Models of embeddings: one at two providers, one whose first endpoint always fails, one for each other wire. */
export const sandboxVectorModels: Record<string, ModelRow> = {
  'sandbox/embed': vectorModel('embed', 'Makes vectors of eight numbers; the same text has the same one.', [
    vectorEndpoint('sandbox', 'echo'),
    vectorEndpoint('sandbox-cohere', 'echo', dearVectorPrices),
  ]),
  'sandbox/embed-fallback': vectorModel(
    'embed fallback',
    'Its first endpoint always fails; the second makes vectors.',
    [vectorEndpoint('sandbox', 'fail-503'), vectorEndpoint('sandbox-cohere', 'echo', dearVectorPrices)],
  ),
  ...Object.fromEntries(
    [
      ...Object.keys(apart)
        .filter((short) => short === 'gemini' || short === 'cohere')
        .map((short) => [short, apart[short]?.upstream_model('echo') ?? ''] as const),
      ...Object.entries(vectors).map(([short, { prefix }]) => [short, `${prefix}echo`] as const),
    ].map(([short, upstream_model]) => [
      `sandbox/embed-${short}`,
      vectorModel(
        `embed ${short}`,
        `Makes vectors as ${short} does.`,
        [vectorEndpoint(`sandbox-${short}`, upstream_model)],
        vectors[short]?.takes_images ?? true,
      ),
    ]),
  ),
};

function speechModel(slug: string, description: string, endpoints: EndpointRow[]): ModelRow {
  return {
    ...model(slug, description, endpoints),
    input_modalities: ['audio'],
    output_modalities: ['transcription'],
  };
}

const speechPrices = { audio_second: 0.0001 };
const dearSpeechPrices = { audio_second: 0.0002 };

/** Models of speech to text: one at two providers, one whose first endpoint always fails, one for each other wire, and a chat model that accepts sound. */
export const sandboxSpeechModels: Record<string, ModelRow> = {
  'sandbox/transcribe': speechModel('transcribe', 'Reports the duration and the format of the audio.', [
    endpoint('sandbox', 'echo', speechPrices),
    endpoint('sandbox-deepgram', 'echo', dearSpeechPrices),
  ]),
  'sandbox/transcribe-fallback': speechModel(
    'transcribe fallback',
    'Its first endpoint always fails; the second transcribes.',
    [endpoint('sandbox', 'fail-503', speechPrices), endpoint('sandbox-deepgram', 'echo', dearSpeechPrices)],
  ),
  'sandbox/transcribe-tokens': speechModel('transcribe tokens', 'Transcribes, and is paid by tokens.', [
    endpoint('sandbox', 'echo'),
  ]),
  ...Object.fromEntries(
    Object.keys(speech).map((short) => [
      `sandbox/transcribe-${short}`,
      speechModel(`transcribe ${short}`, `Transcribes as ${short} does.`, [
        endpoint(`sandbox-${short}`, 'echo', speechPrices),
      ]),
    ]),
  ),
  'sandbox/transcribe-gemini': {
    ...model('transcribe gemini', 'A chat model that accepts audio.', [
      endpoint('sandbox-gemini', apart['gemini']?.upstream_model('echo') ?? ''),
    ]),
    input_modalities: ['text', 'audio'],
  },
};
