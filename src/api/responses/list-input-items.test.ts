import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../test/harness.ts';
import { array, object } from '../../../test/readings/recordings.ts';
import { askOf, startStoring } from '../../../test/storing-gateway.ts';
import type { JsonObject } from '../../schemas/json.ts';

describe('listing the input of a stored response', () => {
  let gateway: TestGateway;
  const send = askOf(() => gateway);

  const start = (dataDir?: string) => startStoring({ nowMs: Date.now }, { data_dir: dataDir });
  beforeAll(async () => {
    gateway = await start();
  });
  afterAll(() => gateway.stop());

  const echo = { model: 'sandbox/echo', store: true };

  test('its input is listed in pages with all previous items, each with a stable id', async () => {
    const first = await send('POST', '/responses', { ...echo, input: 'One' });
    const input = [{ role: 'user', content: 'Two', id: 'msg_own' }];
    const { answer } = await send('POST', '/responses', { ...echo, input, previous_response_id: first.answer['id'] });
    const path = `/responses/${answer['id']}/input_items`;
    const all = (await send('GET', `${path}?order=asc`)).answer;
    const [question, answered] = array(all['data']).map(object);
    expect(all).toMatchObject({ object: 'list', has_more: false, last_id: 'msg_own', first_id: question?.['id'] });
    expect(question).toMatchObject({ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'One' }] });
    expect(answered).toEqual(array(first.answer['output'])[0]);
    const ids: unknown[] = [];
    for (let after = ''; ; ) {
      const page = (await send('GET', `${path}?limit=2${after}`)).answer;
      ids.push(...array(page['data']).map((item) => object(item)['id']));
      if (page['has_more'] !== true) break;
      after = `&after=${page['last_id']}`;
    }
    expect(ids).toEqual(['msg_own', answered?.['id'], question?.['id']]);
    const refused = await send('GET', `${path}?after=nothing`);
    expect(refused.status).toBe(400);
    expect(refused.answer['error']).toMatchObject({ param: 'after' });
    expect((await send('GET', '/responses/gen-0/input_items')).status).toBe(404);
  });

  test('paging ends even if items have the same id', async () => {
    const item = (content: string) => ({ role: 'user', content, id: 'msg_same' });
    const { answer } = await send('POST', '/responses', { ...echo, input: [item('One'), item('Two'), item('Three')] });
    const texts: unknown[] = [];
    let page: JsonObject = { has_more: true };
    for (let turns = 0; page['has_more'] === true && turns < 5; turns += 1) {
      const after = turns === 0 ? '' : `&after=${page['last_id']}`;
      page = (await send('GET', `/responses/${answer['id']}/input_items?limit=1${after}`)).answer;
      texts.push(...array(page['data']).map((one) => object(array(object(one)['content'])[0])['text']));
    }
    expect(texts).toEqual(['Three', 'Two', 'One']);
  });
});
