import type { DataPolicy } from './provider.ts';

/** What a provider publishes about the data of paying callers of its API, as far as it holds without an agreement or a setting. */
export interface PublishedPolicy extends DataPolicy {
  /** The pages that say so. */
  sources: readonly string[];
  /** When they were last read. */
  checked: string;
  /** Models of which they do not say it: tested against the model's slug and, after a space, the upstream's name. */
  not_of?: RegExp;
}

const checked = '2026-11-22';

/**
 * By the slug of a bundled provider. What a page does not say is unknown, and what a customer must agree on, ask for or switch on is
 * not in force: zero retention at OpenAI, Anthropic, xAI, Groq, Together, Mistral, Azure, Bedrock and Vertex AI is the operator's to declare.
 * A provider that trains on what unpaid callers send (Google AI Studio, Mistral) is unknown, since the gateway does not see the plan.
 */
export const publishedPolicies: Readonly<Record<string, PublishedPolicy>> = {
  openai: {
    training: false,
    retention_days: 30,
    sources: ['https://developers.openai.com/api/docs/guides/your-data'],
    checked,
  },
  anthropic: {
    training: false,
    retention_days: 30,
    sources: [
      'https://support.anthropic.com/en/articles/9267385-does-anthropic-act-as-a-data-processor-or-controller',
      'https://privacy.anthropic.com/en/articles/7996866-how-long-do-you-store-personal-data',
    ],
    checked,
  },
  xai: {
    training: false,
    retention_days: 30,
    sources: ['https://docs.x.ai/docs/faq/security'],
    checked,
  },
  perplexity: {
    training: false,
    retention_days: 0,
    sources: ['https://docs.perplexity.ai/docs/resources/privacy-security'],
    checked,
    not_of: /^(?!perplexity\/sonar)/,
  },
  // Of what Microsoft hosts itself; the makers of other models have terms of their own.
  azure: {
    training: false,
    retention_days: 'unknown',
    sources: ['https://learn.microsoft.com/en-us/legal/cognitive-services/openai/data-privacy'],
    checked,
    not_of: /^(?!openai\/)/,
  },
  // How long depends on the model, and on a mode of the account.
  'amazon-bedrock': {
    training: false,
    retention_days: 'unknown',
    sources: [
      'https://docs.aws.amazon.com/bedrock/latest/userguide/data-protection.html',
      'https://docs.aws.amazon.com/bedrock/latest/userguide/data-retention.html',
    ],
    checked,
  },
  'google-vertex': {
    training: false,
    retention_days: 'unknown',
    sources: ['https://docs.cloud.google.com/gemini-enterprise-agent-platform/resources/zero-data-retention'],
    checked,
  },
  cloudflare: {
    training: false,
    retention_days: 'unknown',
    sources: ['https://developers.cloudflare.com/workers-ai/platform/data-usage/'],
    checked,
  },
  // Kept where needed against failures and abuse.
  groq: {
    training: 'unknown',
    retention_days: 30,
    sources: ['https://console.groq.com/docs/your-data'],
    checked,
  },
  // Stored until the organization says otherwise.
  together: {
    training: false,
    retention_days: 'unknown',
    sources: ['https://docs.together.ai/docs/zero-data-retention'],
    checked,
  },
  // Of open models, over the wire of chat completions.
  fireworks: {
    training: 'unknown',
    retention_days: 0,
    sources: ['https://docs.fireworks.ai/guides/security_compliance/data_handling'],
    checked,
  },
  deepinfra: {
    training: false,
    retention_days: 0,
    sources: ['https://docs.deepinfra.com/account/data-privacy'],
    checked,
    not_of: /\b(?:google|anthropic)\/|claude|gemini/i,
  },
  baseten: {
    training: 'unknown',
    retention_days: 0,
    sources: ['https://docs.baseten.co/observability/security'],
    checked,
  },
  // Requests that end in a fault of the server are kept for two weeks.
  scaleway: {
    training: 'unknown',
    retention_days: 14,
    sources: ['https://www.scaleway.com/en/docs/generative-apis/reference-content/data-privacy/'],
    checked,
  },
};
