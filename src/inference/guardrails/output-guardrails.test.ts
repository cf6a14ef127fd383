import { expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import { UNRESTRICTED } from '../../guardrails/policy/guardrail.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import type { Call } from '../call.ts';
import type { Engine } from '../create-inference.ts';
import type { StreamEvent } from '../events.ts';
import { NO_USAGE } from '../money/answer-usage.ts';
import { createPipeline } from '../pipeline.ts';
import { outputGuardrails } from './output-guardrails.ts';

const guardrail: BoundGuardrail = {
  id: 'g',
  scope: 'api-key',
  ...UNRESTRICTED,
  content_filter_builtins: [{ slug: 'email', action: 'redact' }],
  content_filters: null,
  content_filter_output: true,
  content_filter_reversible: null,
};

test('bodies of continuations and errors of broken answers are filtered like the answer', async () => {
  const stages: Call['stages'] = [];
  const opened = (content: string) =>
    ({
      type: 'open',
      served: { model: 'm', provider: 'p' },
      upstream_bodies: [{ messages: [{ role: 'assistant', content }] }],
    }) as unknown as StreamEvent;
  const text = (content: string, n: number): StreamEvent => ({
    type: 'chunks',
    chunks: [{ delta: { content }, ext: { slot: { n, open: { kind: 'text' } } } }],
  });
  async function* stream(): AsyncGenerator<StreamEvent, void, undefined> {
    yield opened('');
    yield text('Ask bob@mail.example.com or eve@mail', 0);
    yield opened('Ask bob@mail.example.com or eve@mail');
    yield text('.example.com.', 0);
    const error = new GatewayError(502, 'It broke off at joe@mail.example.com', {
      metadata: {
        provider_name: 'p',
        raw: '{"failed_generation":"joe\\u0040mail.example.com"}',
        retry_after_seconds: 1,
      },
      cause: new UpstreamError('unavailable', 'It broke off', { status: 502 }),
    });
    yield { type: 'end', usage: NO_USAGE, classes: null, metadata: undefined, error };
  }
  const engine = { stream } as unknown as Engine;
  const filtered = createPipeline(engine, [outputGuardrails({ metrics: { contentFiltered() {} } })]);
  const call = { request: {}, principal: { guardrails: [guardrail] }, stages } as unknown as Call;
  const events: StreamEvent[] = [];
  for await (const event of filtered.stream(call)) events.push(event);
  const chunks = events.flatMap((event) => (event.type === 'chunks' ? event.chunks : []));
  expect(chunks.map(({ delta }) => delta.content ?? '').join('')).toBe('Ask [EMAIL] or [EMAIL].');
  expect(JSON.stringify(events)).not.toContain('bob@');
  const end = events.at(-1);
  expect(end?.type === 'end' && end.error).toMatchObject({
    status: 502,
    message: 'It broke off at [EMAIL]',
    metadata: { provider_name: 'p', raw: '{"failed_generation":"[EMAIL]"}', retry_after_seconds: 1 },
  });
  expect(stages).toHaveLength(1);
});

test('a match in a choice is reported also if another choice with a match ended before it', async () => {
  const stages: Call['stages'] = [];
  const ending = (choice: number, content: string): StreamEvent => ({
    type: 'chunks',
    chunks: [
      { choice, delta: { content } },
      { choice, delta: {}, finish_reason: 'stop', native_finish_reason: 'stop' },
    ],
  });
  let stagesAtEnd = 0;
  async function* stream(): AsyncGenerator<StreamEvent, void, undefined> {
    yield { type: 'open', served: { model: 'm', provider: 'p' }, upstream_bodies: [] };
    yield ending(0, 'Ask bob@mail.example.com');
    yield ending(1, 'Ask eve@mail.example.com');
    stagesAtEnd = stages.length;
    yield { type: 'end', usage: NO_USAGE, classes: null, metadata: undefined, error: undefined };
  }
  const counted: string[] = [];
  const metrics = {
    contentFiltered: (filter: string, _action: string, count = 1) =>
      void counted.push(...Array<string>(count).fill(filter)),
  };
  const engine = { stream } as unknown as Engine;
  const call = { request: { n: 2 }, principal: { guardrails: [guardrail] }, stages } as unknown as Call;
  const events = createPipeline(engine, [outputGuardrails({ metrics })]).stream(call);
  for await (const event of events) expect(JSON.stringify(event)).not.toContain('mail.example.com');
  // Before the end event, so that the record of the call contains them.
  expect(stagesAtEnd).toBe(1);
  expect(stages).toMatchObject([{ summary: 'Answer redacted: 2 matches (email)' }]);
  expect(counted).toEqual(['email', 'email']);
});
