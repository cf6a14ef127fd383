import { expect, test } from 'vitest';
import { dialects } from '../../src/providers/dialects.ts';
import type { ChatRequest, InnerPart, Message } from '../../src/schemas/inner.ts';

/**
 * The speaker's name is lost on no wire: models without a field `name` receive it before the text (specification,
 * Message).
 */

const picture: InnerPart = { type: 'image_url', image_url: { url: 'data:image/png;base64,QUJD' } };

function sent(wire: string, content: Message['content']): string {
  const request: ChatRequest = { messages: [{ role: 'user', name: 'ann', content }], max_tokens: 9 };
  const endpoint = {
    model: 'acme/m',
    provider: 'acme',
    upstream_model: 'm',
    max_completion_tokens: undefined,
    context_length: undefined,
    input_modalities: ['text', 'image'],
    quirks: { names_in_text: true },
  };
  const dialect = [...dialects.values()].find((one) => one.wire === wire)!;
  return JSON.stringify(dialect.encodeRequest(request, endpoint, { media: new Map(), strip_state: false }).body);
}

const wires = [...dialects.values()].map(({ wire }) => wire);

test.each(wires)('%s: the name precedes a text', (wire) => {
  for (const content of ['Hello', [picture, { type: 'text' as const, text: 'Hello' }]]) {
    expect(sent(wire, content)).toContain('"ann: Hello"');
  }
});

test.each(wires)('%s: the name precedes an image without a text', (wire) => {
  expect(sent(wire, [picture])).toContain('"ann:"');
});
