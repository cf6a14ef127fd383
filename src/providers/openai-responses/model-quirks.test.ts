import { expect, test } from 'vitest';
import { responsesModelQuirks } from './model-quirks.ts';

test('models without reasoning get no request for encrypted reasoning', () => {
  const unthinking = [
    'gpt-4o',
    'gpt-4.1-mini',
    'gpt-3.5-turbo',
    'chatgpt-4o-latest',
    'gpt-5-chat-latest',
    'gpt-5.2-chat',
  ];
  for (const name of unthinking) expect(responsesModelQuirks(name), name).toEqual({ no_encrypted_reasoning: true });
  const thinking = [
    'gpt-5',
    'gpt-5.1-codex-max',
    'gpt-5.6-sol',
    'o3-pro',
    'o4-mini-deep-research',
    'grok-4.3',
    'openai.gpt-5.6-luna',
  ];
  for (const name of thinking) expect(responsesModelQuirks(name), name).toEqual({});
});
