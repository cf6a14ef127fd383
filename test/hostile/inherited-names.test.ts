/**
 * A text of a caller or provider that is the name of an inherited member of objects (`constructor`, `__proto__`) is an
 * unknown text like any other.
 */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { finishReason as anthropicFinish } from '../../src/providers/anthropic-messages/finish.ts';
import { finishOf as bedrockFinish } from '../../src/providers/bedrock-converse/finish.ts';
import { finishReason as cohereFinish } from '../../src/providers/cohere-chat/finish.ts';
import { dialects } from '../../src/providers/dialects.ts';
import { finishReason as geminiFinish } from '../../src/providers/gemini-generate-content/finish.ts';
import { finishReason as chatFinish } from '../../src/providers/openai-chat/finish.ts';

const NAMES = Object.getOwnPropertyNames(Object.prototype);

const finishes: Record<string, (native: string, hasOutput: boolean) => unknown> = {
  'openai-chat': (native, hasOutput) => chatFinish(native, { has_calls: false, is_empty: !hasOutput }),
  'anthropic-messages': (native, hasOutput) => anthropicFinish(native, turn(hasOutput)),
  'bedrock-converse': (native, hasOutput) => bedrockFinish(native, turn(hasOutput)),
  'cohere-chat': (native, hasOutput) => cohereFinish(native, turn(hasOutput)),
  'gemini-generate-content': (native, hasOutput) => geminiFinish(native, turn(hasOutput)),
};

function turn(hasOutput: boolean) {
  return { hasCalls: () => false, hasOutput: () => hasOutput };
}

describe.each(Object.entries(finishes))('the finish reason of %s', (_wire, finish) => {
  test('is handled as an unknown reason', () => {
    for (const hasOutput of [true, false]) {
      const unknown = finish('zzz', hasOutput);
      for (const name of NAMES) {
        expect(finish(name, hasOutput)).toEqual(unknown);
        expect(finish(name.toLowerCase(), hasOutput)).toEqual(unknown);
      }
    }
  });
});

test.each([...dialects])(
  'the renamed tools of %s include no inherited name, with and without a renamed tool',
  (_wire, dialect) => {
    const endpoint = {
      model: 'a/model',
      provider: 'acme',
      upstream_model: 'm',
      max_completion_tokens: 100,
      context_length: undefined,
      input_modalities: ['text'],
      quirks: {},
    };
    for (const name of ['plain', 'an odd/name of a tool']) {
      const tools = [{ type: 'function' as const, function: { name, parameters: { type: 'object' } } }];
      const messages = [{ role: 'user' as const, content: 'x' }];
      const { state } = dialect.encodeRequest({ messages, tools }, endpoint, { media: new Map(), strip_state: false });
      const names = (state['tool_names'] ?? Object.create(null)) as Record<string, unknown>;
      expect(NAMES.filter((inherited) => names[inherited] !== undefined)).toEqual([]);
    }
  },
);

test('constant tables with names from outside inherit nothing: they are made by `lookupTable`', () => {
  const plain = globSync('src/{api,catalog,guardrails,http,inference,plugins,providers,routing,schemas}/**/*.ts')
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => {
      const matches = readFileSync(file, 'utf8').match(
        /^(?:export )?const \w+: (?:Readonly<)?Record<string, .*> = \{/gm,
      );
      return (matches ?? []).map((line) => `${file}: ${line}`);
    });
  expect(plain).toEqual([]);
});
