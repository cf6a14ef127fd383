import { lookupTable } from '../schemas/lookup-table.ts';
import type { DataPolicy } from './provider.ts';

/** The provider's published policy for the data of paying API callers, as far as it holds without an agreement or a setting. */
export interface PublishedPolicy extends DataPolicy {
  /** The pages that state the policy. */
  sources: readonly string[];
  /** The date on which the pages were last read. */
  checked: string;
  /** Models that the pages do not cover: matched against the model's slug and, after a space, the upstream's name. */
  not_of?: RegExp;
}

const checked = '2026-11-22';

/**
 * By the slug of a bundled provider. A point on which the page is silent is `unknown`. What a customer must agree on, request or switch on
 * is not in force: zero retention at OpenAI, Anthropic, xAI, Groq, Together, Mistral, Azure, Bedrock and Vertex AI is the operator's to
 * declare. A provider that trains on the data of unpaid callers (Google AI Studio, Mistral) is unknown, since the gateway does not know
 * the plan.
 */
export const publishedPolicies: Readonly<Record<string, PublishedPolicy>> = lookupTable({
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
  // Models that Microsoft hosts itself; the makers of other models have terms of their own.
  azure: {
    training: false,
    retention_days: 'unknown',
    sources: ['https://learn.microsoft.com/en-us/legal/cognitive-services/openai/data-privacy'],
    checked,
    not_of: /^(?!openai\/)/,
  },
  // The retention depends on the model, and on a mode of the account.
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
  // Kept if needed against failures and abuse.
  groq: {
    training: 'unknown',
    retention_days: 30,
    sources: ['https://console.groq.com/docs/your-data'],
    checked,
  },
  // Stored unless the organization opts out.
  together: {
    training: false,
    retention_days: 'unknown',
    sources: ['https://docs.together.ai/docs/zero-data-retention'],
    checked,
  },
  // Open models, over the chat completions wire.
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
});
