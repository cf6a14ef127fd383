import type { Wire } from '../schemas/inner.ts';
import { gemini_model_prefix } from './gemini-generate-content.ts';
import { model_context_tokens, model_output_tokens, sandbox_models } from './models.ts';

/** A row of the configuration's `providers` section, as an operator would write it. */
interface ProviderRow {
  name: string;
  dialect: Wire;
  base_url: string;
  data_policy: { training: boolean; retention: string };
  abort_stops_billing: boolean;
}

interface EndpointRow {
  provider: string;
  upstream_model: string;
  /** USD per million tokens. */
  pricing: { prompt: number; completion: number; input_cache_read: number; input_cache_write: number };
  max_completion_tokens: number;
}

interface ModelRow {
  name: string;
  description: string;
  created: number;
  context_length: number;
  input_modalities: string[];
  output_modalities: string[];
  tokenizer: string;
  endpoints: EndpointRow[];
}

// The second provider is dearer, so that a fallback shows in the cost.
const prices = {
  sandbox: { prompt: 0.1, completion: 0.4, input_cache_read: 0.025, input_cache_write: 0.1 },
  'sandbox-anthropic': { prompt: 0.2, completion: 0.8, input_cache_read: 0.02, input_cache_write: 0.25 },
};

/** A provider that speaks one more wire, with models of its own: `sandbox/<name>-echo` and so on. */
interface ApartRow {
  name: string;
  dialect: Wire;
  /** Appended to the sandbox's address. */
  path: string;
  /** What the provider calls a model: some wires tell from the name what a model takes. */
  upstream_model(slug: string): string;
}
const apart: Readonly<Record<string, ApartRow>> = {
  gemini: {
    name: 'Sandbox Gemini',
    dialect: 'gemini-generate-content',
    path: '/v1beta',
    upstream_model: (slug) => gemini_model_prefix + slug,
  },
  cohere: { name: 'Sandbox Cohere', dialect: 'cohere-chat', path: '/v2', upstream_model: (slug) => slug },
};

const first_release_s = Date.UTC(2026, 0, 1) / 1000;

function endpoint(
  provider: string,
  upstream_model: string,
  pricing: EndpointRow['pricing'] = prices.sandbox,
): EndpointRow {
  return { provider, upstream_model, pricing, max_completion_tokens: model_output_tokens };
}

function model(slug: string, description: string, endpoints: EndpointRow[]): ModelRow {
  return {
    name: `Sandbox ${slug}`,
    description,
    created: first_release_s,
    context_length: model_context_tokens,
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

/** The providers that a running sandbox is, in the form of the configuration's `providers` section. */
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
  };
}

/** Every sandbox model at the first two providers and apart at each other, and one whose first endpoint always fails; in the form of the `models` section. */
export const sandboxModels: Record<string, ModelRow> = {
  ...Object.fromEntries(
    Object.entries(sandbox_models).flatMap(([slug, { description }]) => [
      [`sandbox/${slug}`, atBoth(slug, description, slug, slug)],
      ...Object.entries(apart).map(([short, { upstream_model }]) => [
        `sandbox/${short}-${slug}`,
        model(`${short} ${slug}`, description, [endpoint(`sandbox-${short}`, upstream_model(slug))]),
      ]),
    ]),
  ),
  'sandbox/fallback': atBoth('fallback', 'Its first endpoint always fails; the second answers.', 'fail-503', 'echo'),
};
