/** The invented company of `model-gateway demo`: its models, teams, keys and habits. */

/** Prices in USD per million tokens. */
export const demoModels = [
  { id: 'aurora/large-3', name: 'Aurora Large 3', served: ['aurora', 'northwind'], price: [3, 15], share: 22, tps: 70 },
  {
    id: 'aurora/mini-3',
    name: 'Aurora Mini 3',
    served: ['aurora', 'northwind'],
    price: [0.25, 1.25],
    share: 40,
    tps: 140,
  },
  { id: 'boreal/reason-2', name: 'Boreal Reason 2', served: ['boreal'], price: [1.1, 4.4], share: 14, tps: 55 },
  {
    id: 'boreal/chat-2',
    name: 'Boreal Chat 2',
    served: ['boreal', 'northwind'],
    price: [0.6, 2.4],
    share: 24,
    tps: 90,
  },
] as const;

export const demoProviders = { aurora: 'Aurora AI', boreal: 'Boreal Labs', northwind: 'Northwind Cloud' } as const;

/** Limits in USD, of which a usual window spends a half or more. Tokens: the usual sizes of prompts and answers. `hours`: work follows the office's day, or runs all day. */
export const demoTeams = [
  {
    name: 'Support',
    slug: 'support',
    description: 'Answers customers, with a person behind each answer.',
    budget: 25,
    keys: [
      { name: 'helpdesk assistant', limit: 1.5, reset: 'daily', share: 34, prompt: 2_400, answer: 320, hours: 'day' },
      { name: 'ticket triage', limit: 0.25, reset: 'daily', share: 22, prompt: 900, answer: 60, hours: 'all' },
    ],
  },
  {
    name: 'Product',
    slug: 'product',
    description: 'The writing assistant inside the application.',
    budget: 20,
    keys: [
      {
        name: 'writing assistant, production',
        limit: 8,
        reset: 'weekly',
        share: 24,
        prompt: 1_800,
        answer: 700,
        hours: 'day',
      },
      {
        name: 'writing assistant, staging',
        limit: 0.5,
        reset: 'daily',
        share: 4,
        prompt: 1_500,
        answer: 500,
        hours: 'day',
      },
    ],
  },
  {
    name: 'Engineering',
    slug: 'engineering',
    description: 'Coding agents and reviews.',
    budget: 40,
    keys: [
      { name: 'coding agents', limit: 12, reset: 'weekly', share: 12, prompt: 14_000, answer: 1_100, hours: 'day' },
      { name: 'nightly review', limit: 5, reset: 'monthly', share: 3, prompt: 9_000, answer: 900, hours: 'night' },
    ],
  },
] as const;

export const demoMembers = [
  ['ada@lanternfish.example', 'Ada Okafor', 'admin'],
  ['bruno@lanternfish.example', 'Bruno Keller', 'member'],
  ['chiara@lanternfish.example', 'Chiara Lindqvist', 'member'],
  ['deniz@lanternfish.example', 'Deniz Aydin', 'member'],
] as const;

export const demoQuestions = [
  'Where is my parcel? The order number is 48213.',
  'Summarize this ticket in two sentences.',
  'Rewrite the paragraph so that a beginner understands it.',
  'Which of our plans includes exports?',
] as const;
