import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../test/harness.ts';
import { array, object } from '../../../test/readings/recordings.ts';
import { askOf, startStoring } from '../../../test/storing-gateway.ts';

describe('listing the input of a stored response', () => {
  let gateway: TestGateway;
  const ask = askOf(() => gateway);

  const start = (data_dir?: string) => startStoring({ now_ms: Date.now }, { data_dir });
  beforeAll(async () => {
    gateway = await start();
  });
  afterAll(() => gateway.stop());

  const echo = { model: 'sandbox/echo', store: true };

  test('its input is listed in pages with all before it, each item under an id that stays', async () => {
    const first = await ask('POST', '/responses', { ...echo, input: 'One' });
    const input = [{ role: 'user', content: 'Two', id: 'msg_own' }];
    const { answer } = await ask('POST', '/responses', { ...echo, input, previous_response_id: first.answer['id'] });
    const path = `/responses/${answer['id']}/input_items`;
    const all = (await ask('GET', `${path}?order=asc`)).answer;
    const [asked, said] = array(all['data']).map(object);
    expect(all).toMatchObject({ object: 'list', has_more: false, last_id: 'msg_own', first_id: asked?.['id'] });
    expect(asked).toMatchObject({ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'One' }] });
    expect(said).toEqual(array(first.answer['output'])[0]);
    const ids: unknown[] = [];
    for (let after = ''; ; ) {
      const page = (await ask('GET', `${path}?limit=2${after}`)).answer;
      ids.push(...array(page['data']).map((item) => object(item)['id']));
      if (page['has_more'] !== true) break;
      after = `&after=${page['last_id']}`;
    }
    expect(ids).toEqual(['msg_own', said?.['id'], asked?.['id']]);
    expect((await ask('GET', `${path}?after=nothing`)).status).toBe(400);
    expect((await ask('GET', '/responses/gen-0/input_items')).status).toBe(404);
  });
});
