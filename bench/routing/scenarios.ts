import type { Incident, ProviderFacts } from './far-side.ts';

/** Two hours with three providers. */
export interface Scenario {
  name: string;
  description: string;
  providers: readonly ProviderFacts[];
  incidents: readonly Incident[];
}

/**
 * The cheapest provider is the slowest, the most expensive the fastest, and the middle one is near the cheapest in
 * price.
 */
const USUAL: readonly ProviderFacts[] = [
  { name: 'thrift', prompt_usd: 0.2, completion_usd: 0.8, first_token_ms: 600, spread: 0.45, tokens_per_second: 60 },
  { name: 'middle', prompt_usd: 0.26, completion_usd: 1.04, first_token_ms: 400, spread: 0.35, tokens_per_second: 90 },
  { name: 'swift', prompt_usd: 0.6, completion_usd: 2.4, first_token_ms: 180, spread: 0.25, tokens_per_second: 220 },
];

const LIMITED: readonly ProviderFacts[] = USUAL.map((provider) => {
  if (provider.name === 'thrift') return { ...provider, requests_per_minute: 90, tells_retry_after: true };
  return provider.name === 'middle' ? { ...provider, requests_per_minute: 150 } : provider;
});

const TWO_BAD_HOURS: readonly Incident[] = [
  { provider: 'thrift', is: 'down', from_min: 8, to_min: 14 },
  { provider: 'middle', is: 'slow', factor: 4, from_min: 10, to_min: 20 },
  { provider: 'thrift', is: 'slow', factor: 8, from_min: 45, to_min: 60 },
  { provider: 'middle', is: 'errors', share: 0.3, from_min: 50, to_min: 64 },
  { provider: 'middle', is: 'refused', from_min: 76, to_min: 84 },
  { provider: 'thrift', is: 'limited', requests_per_minute: 20, from_min: 80, to_min: 92 },
  { provider: 'swift', is: 'down', from_min: 96, to_min: 106 },
];

/** Incidents of bad weeks, each kind by itself and then all of them in two hours. */
export const SCENARIOS: readonly Scenario[] = [
  { name: 'calm', description: 'no incident', providers: USUAL, incidents: [] },
  {
    name: 'outages',
    description: '503 of the cheapest, refused connections of the next, both at once for a while, and 30 % of 500s',
    providers: USUAL,
    incidents: [
      { provider: 'thrift', is: 'down', from_min: 10, to_min: 25 },
      { provider: 'middle', is: 'refused', from_min: 20, to_min: 35 },
      { provider: 'thrift', is: 'errors', share: 0.3, from_min: 50, to_min: 70 },
      { provider: 'thrift', is: 'down', from_min: 90, to_min: 91 },
      { provider: 'swift', is: 'down', from_min: 80, to_min: 95 },
    ],
  },
  {
    name: 'hangs',
    description: 'the cheapest accepts requests and never answers: all of them, later a tenth of them',
    providers: USUAL,
    incidents: [
      { provider: 'thrift', is: 'hangs', from_min: 15, to_min: 30 },
      { provider: 'thrift', is: 'hangs', share: 0.1, from_min: 70, to_min: 90 },
    ],
  },
  {
    name: 'dying streams',
    description: 'the cheapest breaks off its streams after the first text: all of them, later a fifth of them',
    providers: USUAL,
    incidents: [
      { provider: 'thrift', is: 'dies', from_min: 20, to_min: 35 },
      { provider: 'thrift', is: 'dies', share: 0.2, from_min: 80, to_min: 100 },
    ],
  },
  {
    name: 'latency shifts',
    description: 'the cheapest eight times slower, then the next four times',
    providers: USUAL,
    incidents: [
      { provider: 'thrift', is: 'slow', factor: 8, from_min: 20, to_min: 50 },
      { provider: 'middle', is: 'slow', factor: 4, from_min: 40, to_min: 70 },
    ],
  },
  {
    name: 'rate limits',
    description:
      'the cheapest accepts 90 requests a minute, later 20, and states how long to wait; the next 150, later 40, without stating it',
    providers: LIMITED,
    incidents: [
      { provider: 'thrift', is: 'limited', requests_per_minute: 20, from_min: 50, to_min: 90 },
      { provider: 'middle', is: 'limited', requests_per_minute: 40, from_min: 30, to_min: 70 },
    ],
  },
  {
    name: 'two bad hours',
    description: 'outages, latency shifts and rate limits, one after another and together',
    providers: LIMITED,
    incidents: TWO_BAD_HOURS,
  },
  {
    name: 'two worse hours',
    description: 'the same with hangs and dying streams',
    providers: LIMITED,
    incidents: [
      ...TWO_BAD_HOURS,
      { provider: 'thrift', is: 'hangs', from_min: 30, to_min: 36 },
      { provider: 'middle', is: 'hangs', share: 0.1, from_min: 38, to_min: 42 },
      { provider: 'thrift', is: 'dies', share: 0.3, from_min: 66, to_min: 72 },
      { provider: 'swift', is: 'dies', from_min: 112, to_min: 114 },
    ],
  },
];
