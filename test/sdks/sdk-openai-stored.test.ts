/** OpenAI's SDK with an operator that allows stored responses: conversations continue from an id. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientWires, modelOf, openaiOf, refuseWarnings, type SdkGateway, startSdkGateway } from './sdk-gateway.ts';

let served: SdkGateway;
let openai: OpenAI;
beforeAll(async () => {
  served = await startSdkGateway([], { responses: { store: true } });
  openai = openaiOf(served.gateway);
});
afterAll(() => served.stop());
refuseWarnings();

const tools = ['get_weather', 'get_time'].map((name) => ({
  type: 'function' as const,
  name,
  parameters: { type: 'object' },
  strict: false,
}));

describe.each(clientWires('openai'))('over %s', (wire) => {
  const ask = async (
    more: Partial<Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'>>,
    streamed: boolean,
  ): Promise<OpenAI.Responses.Response> => {
    const request = { model: modelOf(wire, 'tools'), tools, store: true, ...more };
    return streamed ? openai.responses.stream(request).finalResponse() : openai.responses.create(request);
  };

  test.each([false, true])('a tool loop continues from ids alone: streamed %s', async (streamed) => {
    const first = await ask({ input: 'How is it?', reasoning: { effort: 'low' } }, streamed);
    expect(first).toMatchObject({ store: true });
    const calls = first.output.filter((item) => item.type === 'function_call');
    expect(calls.map(({ name }) => name)).toEqual(['get_weather', 'get_time']);
    const input = calls.map(({ call_id, name }) => ({
      type: 'function_call_output' as const,
      call_id,
      output: name === 'get_time' ? 'Noon' : 'Rain',
    }));
    const second = await ask({ previous_response_id: first.id, input }, streamed);
    expect(second.output_text).toBe('The tools answered: Rain; Noon');
    expect(second.previous_response_id).toBe(first.id);
    const third = await ask(
      { model: modelOf(wire, 'echo'), previous_response_id: second.id, input: 'And now?' },
      streamed,
    );
    expect(third.output_text).toBe('And now?');
    expect(third.usage!.input_tokens).toBeGreaterThan(second.usage!.input_tokens);
  });

  test('a stored response is retrieved unchanged until it is deleted', async () => {
    const created = await ask({ input: 'Hello', tool_choice: 'none' }, true);
    const retrieved = await openai.responses.retrieve(created.id);
    expect([retrieved.output_text, retrieved.output, retrieved.usage]).toEqual([
      created.output_text,
      plain(created.output),
      created.usage,
    ]);
    await openai.responses.delete(created.id);
    await expect(openai.responses.retrieve(created.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    await expect(openai.responses.delete(created.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    const next = ask({ previous_response_id: created.id, input: 'And now?' }, false);
    await expect(next).rejects.toBeInstanceOf(OpenAI.BadRequestError);
  });
});

/** Without additions of the SDK's own parser. */
function plain(output: OpenAI.Responses.ResponseOutputItem[]) {
  return output.map((item) =>
    item.type !== 'message' ? item : { ...item, content: item.content.map((part) => ({ ...part, parsed: undefined })) },
  );
}

test('a response without store is not stored', async () => {
  const { id } = await openai.responses.create({ model: 'openai-chat/echo', input: 'Hello', store: false });
  await expect(openai.responses.retrieve(id)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
});
