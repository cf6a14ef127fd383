/** The playground as a person uses it, over the sandbox: tools, images, schemas, turns, costs, failures and hostile texts. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findings } from './accessibility.ts';
import { BROWSER, type ConsoleBrowser, SLOW, startConsole } from './browser.ts';

const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"'&{{x}}\u202e`;
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR42mNk+M+ABzDhkxy50gBALQETmXEDiQAAAABJRU5ErkJggg==',
  'base64',
);
const SVG = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>window.hacked=1</script></svg>');
const TOOLS = JSON.stringify(
  ['get_weather', 'get_time'].map((name) => ({
    type: 'function',
    function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
  })),
);

/** What the scripted model streams; `MALFORMED`, `HANG` or the whole of `HOSTILE`. */
function scriptedModel(bodies: object[]): Server {
  const event = (response: ServerResponse, value: object) => response.write(`data: ${JSON.stringify(value)}\n\n`);
  return createServer((request, response) => {
    let text = '';
    request.on('data', (part) => {
      text += part;
    });
    request.on('end', () => {
      const body = JSON.parse(text === '' ? '{}' : text) as { messages?: { role: string; content: unknown }[] };
      bodies.push(body);
      const last = JSON.stringify(body.messages?.at(-1) ?? '');
      if (last.includes('please fail')) {
        response.writeHead(400, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: { message: HOSTILE, type: 'invalid_request_error' } }));
        return;
      }
      response.setHeader('content-type', 'text/event-stream');
      const delta = (part: object, finish: string | null = null) =>
        event(response, { id: 'x', choices: [{ index: 0, delta: part, finish_reason: finish }] });
      const end = (finish: string) => {
        delta({}, finish);
        event(response, { id: 'x', choices: [], usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 } });
        response.end('data: [DONE]\n\n');
      };
      if (last.includes('please hang')) {
        delta({ role: 'assistant', content: 'The first words.' });
        return;
      }
      if (last.includes('please be long')) {
        delta({ role: 'assistant', content: '' });
        for (let part = 0; part < 40; part += 1) delta({ content: `${'long words '.repeat(100)}\n` });
        return end('length');
      }
      if (last.includes('please call')) {
        delta({ role: 'assistant', content: '', reasoning: HOSTILE });
        delta({
          tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: `{"a": ${HOSTILE}` } }],
        });
        return end('tool_calls');
      }
      delta({ role: 'assistant', content: HOSTILE });
      end('stop');
    });
  }).listen(0, '127.0.0.1');
}

describe.skipIf(BROWSER === undefined)('the playground in a browser', SLOW, () => {
  let open: ConsoleBrowser;
  let scripted: Server;
  const bodies: { messages?: { role: string; content: unknown }[] }[] = [];
  beforeAll(async () => {
    scripted = scriptedModel(bodies);
    await new Promise((resolve) => scripted.once('listening', resolve));
    const { port } = scripted.address() as AddressInfo;
    const endpoint = (modalities: string) => `
    context_length: 100000
    input_modalities: [${modalities}]
    endpoints:
      - { provider: scripted, upstream_model: m, pricing: { prompt: 1, completion: 2 }, supported_parameters: [tools, tool_choice, max_tokens] }`;
    open = await startConsole({
      environment: { GATEWAY_SANDBOX: 'on' },
      yaml: `
providers:
  scripted:
    dialect: openai-chat
    base_url: http://127.0.0.1:${port}/v1
    api_key: k
models:
  scripted/m:
    name: ${JSON.stringify(HOSTILE)}${endpoint('text, image')}
  scripted/blind:
    name: blind${endpoint('text')}
`,
    });
  }, SLOW.timeout);
  afterAll(async () => {
    await open.stop();
    scripted.close();
    scripted.closeAllConnections();
  });

  const start = async (models: string, options: Parameters<ConsoleBrowser['visit']>[0] = {}) => {
    const visit = await open.visit(options);
    const { page } = visit;
    await page.goto(`${open.gateway.url}/playground?${new URLSearchParams({ models })}`);
    await page.getByRole('button', { name: 'Make a $1 key' }).click();
    await page.getByText('expires in an hour').waitFor();
    return { ...visit, answer: (model: string) => page.getByRole('region', { name: `Answer of ${model}` }) };
  };
  const openPart = (page: Page, title: string) => page.locator('summary', { hasText: title }).click();
  const promptOf = (page: Page) => page.getByLabel('Prompt', { exact: true });
  const isDone = (page: Page, model: string) => page.getByRole('button', { name: `Try ${model} again` }).waitFor();

  test('tools: calls are shown, a result is entered for each, and the model continues', async () => {
    const { page, faults, answer } = await start('sandbox/tools');
    await openPart(page, 'Tools');
    await page.getByLabel('Tools, as JSON').fill(TOOLS);
    await promptOf(page).fill('What is it like in Paris?');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    const cell = answer('sandbox/tools');
    await cell.getByLabel('Result of get_weather, call 1').fill('{"temperature": 21}');
    await cell.getByLabel('Result of get_time, call 2').fill('noon');
    await expect.poll(() => cell.innerText()).toContain('"city": "sample city"');
    await expect.poll(() => cell.innerText()).toContain('Sandbox ·');
    await cell.getByRole('button', { name: 'Send 2 results' }).click();
    await cell.getByText(/The tools answered/).waitFor();
    await expect.poll(() => cell.getByText(/The tools answered/).innerText()).toContain('{"temperature": 21}');
    await expect.poll(() => cell.getByText(/The tools answered/).innerText()).toContain('noon');
    // The results are part of the code of the request, and of the next turn.
    await promptOf(page).fill('And tomorrow?');
    await page.getByRole('button', { name: 'Code' }).click();
    await page.getByRole('button', { name: 'Python' }).click();
    const code = await page.getByRole('group', { name: 'Request: Python' }).innerText();
    expect(code).toContain('"role": "tool"');
    expect(code).toContain('"tool_call_id": "call_');
    expect(code).toContain('tools=[');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('invalid tools show the place of the error, and nothing is sent', async () => {
    const { page, faults } = await start('sandbox/tools');
    await openPart(page, 'Tools');
    const field = page.getByLabel('Tools, as JSON');
    await promptOf(page).fill('hello');
    for (const [text, message] of [
      ['[\n  {"type": "function",}\n]', 'line 2, column 23: "}" stands where a name in double quotes is expected'],
      ['{"type": "function"}', 'must be a list'],
      ['[{"type": "function", "function": {"name": "a b"}}]', 'tools[0].function.name: must be 1 to 64'],
      [TOOLS.replace('get_time', 'get_weather'), 'tools[1].function.name: another tool has the name get_weather'],
      [`[{"type": "function", "function": {"name": "f", "parameters": []}}]`, 'tools[0].function.parameters: must be'],
      ['['.repeat(5_000), 'nested more than 100 levels deep'],
      ['[1, 2', 'line 1, column 6: the text ends where a comma or ] is expected'],
    ] as const) {
      await field.fill(text);
      await page.locator('.failure', { hasText: message }).waitFor();
      await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true');
    }
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await expect.poll(() => page.getByRole('region', { name: 'Turn 1' }).count()).toBe(0);
    await field.fill(TOOLS);
    await page.getByText('Cost before sending').first().waitFor();
    await expect.poll(() => page.locator('.failure').count()).toBe(0);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a paste that is too large is refused before it reaches the field, and the page stays usable', async () => {
    const { page, faults } = await start('sandbox/tools', { permissions: ['clipboard-read', 'clipboard-write'] });
    await openPart(page, 'Tools');
    await page.getByLabel('Tools, as JSON').focus();
    for (const bomb of [`'['.repeat(3000000)`, `'{"a":'.repeat(1000000)`]) {
      await page.evaluate(`navigator.clipboard.writeText(${bomb})`);
      await page.keyboard.press('Control+v');
      await page
        .getByText(/Not inserted: the text has [\d,]{9} characters, and this field takes at most 100,000/)
        .waitFor();
      await expect.poll(() => page.getByLabel('Tools, as JSON').inputValue()).toBe('');
    }
    await page.getByLabel('Tools, as JSON').pressSequentially('[]');
    await expect.poll(() => page.locator('.failure').count()).toBe(0);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('arguments and answers that are not JSON stay as the model wrote them', async () => {
    const { page, faults, answer } = await start('scripted/m');
    await openPart(page, 'Tools');
    await page.getByLabel('Tools, as JSON').fill('[{"type": "function", "function": {"name": "f"}}]');
    await promptOf(page).fill('please call');
    await page.keyboard.press('Control+Enter');
    const cell = answer('scripted/m');
    await cell.getByText('not JSON').waitFor();
    await expect.poll(() => cell.innerText()).toContain(`{"a": ${HOSTILE.slice(0, 40)}`);
    await expect.poll(() => cell.innerText()).toContain('line 1, column 7');
    await page.getByLabel('Result of f').fill(HOSTILE);
    await page.getByRole('button', { name: 'Send the result' }).click();
    await cell.locator('.step').nth(1).getByText('<img src=x').waitFor();
    await openPart(page, 'Tools');
    await openPart(page, 'JSON schema of the answer');
    await page.getByLabel('Schema, as JSON').fill('{"type": "object"');
    await page.locator('.failure', { hasText: 'line 1, column 18: the text ends' }).waitFor();
    await page.getByLabel('Schema, as JSON').fill('{"type": "object"}');
    await page.locator('.failure', { hasText: 'scripted/m follows no JSON schema' }).waitFor();
    const result = await page.evaluate(
      `({ hacked: window.hacked ?? 'no', elements: document.querySelectorAll('main img, main script').length })`,
    );
    expect(result).toEqual({ hacked: 'no', elements: 0 });
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a schema of the answer is sent, a matching answer is formatted, and another answer is marked', async () => {
    const { page, faults, answer } = await start('sandbox/json,sandbox/refuse');
    await openPart(page, 'JSON schema of the answer');
    await page.getByRole('button', { name: 'Insert an example' }).click();
    await promptOf(page).fill('Rate this.');
    await page.getByRole('button', { name: 'Send to 2 models' }).click();
    await isDone(page, 'sandbox/json');
    await isDone(page, 'sandbox/refuse');
    const laidOut = () => answer('sandbox/json').innerText();
    await expect.poll(laidOut).toContain('JSON');
    await expect.poll(laidOut).toContain('{\n  "summary": "sample summary",\n  "score": 0.5\n}');
    await expect.poll(() => answer('sandbox/refuse').innerText()).toContain('not JSON');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('images are chosen, pasted or dropped, bounded, previewed and sent, and are left out of the code', async () => {
    const { page, faults, foreign, answer } = await start('sandbox/echo,scripted/blind');
    const [chooser] = await Promise.all([
      page.waitForEvent('filechooser'),
      page.getByRole('button', { name: 'Add images' }).click(),
    ]);
    await chooser.setFiles([
      { name: `${HOSTILE.replaceAll('/', '')}.png`, mimeType: 'image/png', buffer: PNG },
      { name: 'drawing.png', mimeType: 'image/png', buffer: SVG },
      { name: 'large.png', mimeType: 'image/png', buffer: Buffer.concat([PNG, Buffer.alloc(6_000_000)]) },
    ]);
    await page.getByText('drawing.png: no PNG, JPEG, WebP or GIF image').waitFor();
    await page.getByText('large.png: 6.0 MB; an image has at most 5.0 MB').waitFor();
    const images = page.locator('.composer .images li');
    await expect.poll(() => images.count()).toBe(1);
    const transfer = (kind: string) => `
      const data = new DataTransfer();
      const bytes = Uint8Array.from(atob('${PNG.toString('base64')}'), (one) => one.charCodeAt(0));
      data.items.add(new File([bytes], '${kind}.png', { type: 'image/png' }));
      ${
        kind === 'pasted'
          ? `document.querySelector('.composer textarea').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))`
          : `document.querySelector('.composer').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))`
      }`;
    await page.evaluate(transfer('pasted'));
    await images.nth(1).waitFor();
    await page.evaluate(transfer('dropped'));
    await images.nth(2).waitFor();
    // Each image is rendered, because the policy of the page allows data URLs.
    const drawn = `[...document.querySelectorAll('.composer img')].map((one) => one.naturalWidth)`;
    await expect.poll(() => page.evaluate(drawn)).toEqual([10, 10, 10]);
    await page.getByText('scripted/blind accepts no images').waitFor();
    await page.getByRole('button', { name: 'Remove the image dropped.png' }).click();
    await promptOf(page).fill('What is on it?');
    // The gateway reports before sending that it would refuse the request.
    await page
      .getByRole('row', { name: /scripted\/blind/ })
      .getByText('Would be refused')
      .waitFor();
    await page.getByRole('button', { name: 'Code' }).click();
    for (const language of ['curl', 'Python', 'TypeScript']) {
      await page.getByRole('button', { name: language }).click();
      const code = await page.getByRole('group', { name: `Request: ${language}` }).innerText();
      expect(code).toContain('image-1.png');
      expect(code).not.toContain(PNG.toString('base64').slice(0, 40));
      expect(code).not.toContain('sk-gw-');
      expect(code).not.toContain('onerror');
    }
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Send to 2 models' }).click();
    await isDone(page, 'sandbox/echo');
    await expect.poll(() => answer('sandbox/echo').innerText()).toContain('[2 images] What is on it?');
    await answer('scripted/blind').getByRole('alert').waitFor();
    expect(await page.evaluate('window.hacked ?? "no"')).toBe('no');
    expect(foreign).toEqual([]);
    expect(faults.filter((one) => !/status of 404/.test(one))).toEqual([]);
    await page.context().close();
  });

  test('the cost before sending is that of POST /route/explain, and the cost after leads to the call', async () => {
    const { page, faults, answer } = await start('sandbox/story,sandbox/echo');
    await page.getByRole('button', { name: 'Owner' }).click();
    await page.getByRole('button', { name: 'To the nano-dollar' }).click();
    await page.keyboard.press('Escape');
    await openPart(page, 'System prompt and parameters');
    await page.getByLabel('Most tokens').fill('50');
    await promptOf(page).fill('Tell me a story.');
    const body = { messages: [{ role: 'user', content: 'Tell me a story.' }], max_tokens: 50, stream: true };
    let together = 0;
    for (const model of ['sandbox/story', 'sandbox/echo']) {
      const explained = await open.gateway.call('POST', '/route/explain', { model, ...body });
      const { data } = (await explained.json()) as {
        data: {
          endpoints: { planned: { expected_cost: number; worst_case_cost: number }[] };
          expected_prompt_tokens: number;
        };
      };
      const highest = Math.max(...data.endpoints.planned.map(({ worst_case_cost }) => worst_case_cost));
      together += highest;
      const row = page.getByRole('row', { name: new RegExp(model) });
      await row.getByText(`$${highest.toFixed(9)}`).waitFor();
      await expect.poll(() => row.innerText()).toContain(String(data.expected_prompt_tokens));
    }
    await page
      .getByRole('row', { name: 'Together' })
      .getByText(`$${together.toFixed(9)}`)
      .waitFor();
    await page.getByRole('button', { name: 'Send to 2 models' }).click();
    await isDone(page, 'sandbox/story');
    await isDone(page, 'sandbox/echo');
    const facts = answer('sandbox/story').locator('.facts');
    const shown = await facts.locator('.number').innerText();
    expect(shown).toMatch(/^\$0\.\d{9}$/);
    // The conversation is still there after the call was opened.
    const call = facts.getByRole('link', { name: 'Open the call' });
    await open.recorded(new URL((await call.getAttribute('href')) ?? '', open.gateway.url).searchParams.get('id'));
    await call.click();
    await page.getByRole('dialog', { name: 'Call' }).getByText('Charged').first().waitFor();
    await expect.poll(() => page.getByRole('dialog', { name: 'Call' }).innerText()).toContain(shown);
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Playground' }).first().click();
    await page.getByRole('region', { name: 'Turn 1' }).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('turns: models remember, a prompt is edited and resent, turns are removed, and one failure leaves the others', async () => {
    const { page, answer } = await start('scripted/m,sandbox/echo');
    bodies.length = 0;
    await promptOf(page).fill('please fail');
    await page.getByRole('button', { name: 'Send to 2 models' }).click();
    await isDone(page, 'sandbox/echo');
    const refused = answer('scripted/m').getByRole('alert');
    await refused.getByText('400').waitFor();
    await expect.poll(() => refused.innerText()).toContain('<img src=x onerror');
    await expect.poll(() => refused.innerText()).toMatch(/Request [0-9a-f-]{36}/);
    await expect.poll(() => answer('sandbox/echo').innerText()).toContain('please fail');
    await promptOf(page).fill('second');
    await page.getByRole('button', { name: 'Send to 2 models' }).click();
    await page.getByRole('region', { name: 'Answer of scripted/m, turn 2' }).getByText('tokens').waitFor();
    const roles = bodies.at(-1)?.messages?.map(({ role, content }) => [role, content]);
    expect(roles).toEqual([
      ['user', 'please fail'],
      ['user', 'second'],
    ]);
    await page.getByRole('button', { name: 'Edit prompt 1' }).click();
    await expect.poll(() => page.getByText('and the turn after it removed').count()).toBe(1);
    await page.getByLabel('Edit the prompt').fill('first');
    await page.getByRole('button', { name: 'Send again' }).click();
    await isDone(page, 'scripted/m');
    await isDone(page, 'sandbox/echo');
    await expect.poll(() => page.getByRole('region', { name: 'Turn 2' }).count()).toBe(0);
    await promptOf(page).fill('second');
    await page.keyboard.press('Control+Enter');
    await page.getByText('The conversation cost').waitFor();
    await isDone(page, 'scripted/m');
    const next = bodies.at(-1)?.messages ?? [];
    expect(next.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(next[0]?.content).toBe('first');
    await page.getByRole('button', { name: 'Try scripted/m again' }).click();
    await isDone(page, 'scripted/m');
    expect(bodies.at(-1)?.messages).toEqual(next);
    await page.getByRole('button', { name: 'Remove prompt 1' }).click();
    await expect.poll(() => page.locator('.turn').count()).toBe(1);
    await page.getByRole('button', { name: 'New conversation' }).click();
    await expect.poll(() => page.locator('.turn').count()).toBe(0);
    expect(await page.evaluate('window.hacked ?? "no"')).toBe('no');
    await page.context().close();
  });

  test('a stopped answer keeps its text, and a long answer is shortened until all of it is requested', async () => {
    const { page, faults, answer } = await start('scripted/m');
    await promptOf(page).fill('please hang');
    await page.keyboard.press('Control+Enter');
    await answer('scripted/m').getByText('The first words.').waitFor();
    await page.getByRole('button', { name: 'Stop scripted/m' }).click();
    await answer('scripted/m').getByText('Stopped. What was used until then is charged.').waitFor();
    await expect.poll(() => answer('scripted/m').innerText()).toContain('The first words.');
    await promptOf(page).fill('please be long');
    await page.keyboard.press('Control+Enter');
    const second = page.getByRole('region', { name: 'Answer of scripted/m, turn 2' });
    await second.getByText('Cut off at the longest answer').waitFor();
    await expect.poll(async () => (await second.innerText()).length).toBeLessThan(25_000);
    await second.getByRole('button', { name: /Show all 44,0\d\d characters/ }).click();
    await expect.poll(async () => (await second.innerText()).length).toBeGreaterThan(40_000);
    // The answer scrolls in its own area, also by keyboard.
    await expect
      .poll(() => second.getByRole('group', { name: 'Answer of scripted/m' }).getAttribute('tabindex'))
      .toBe('0');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('the key and the conversation are stored only in the memory of the tab', async () => {
    const { page } = await start('sandbox/echo');
    const key = await page.getByLabel('API key').inputValue();
    expect(key).toMatch(/^sk-gw-/);
    await promptOf(page).fill('planted words');
    await page.keyboard.press('Control+Enter');
    await isDone(page, 'sandbox/echo');
    const stored = await page.evaluate(
      `JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])`,
    );
    expect(stored).not.toContain(key.slice(6, 20));
    expect(stored).not.toContain('planted');
    await page.reload();
    await expect.poll(() => page.getByLabel('API key').inputValue()).toBe('');
    await page.context().close();
  });

  test('by keyboard alone: a key, two models, a prompt, an edit', async () => {
    const { page, faults } = await open.visit();
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    /** Presses Tab until the focused element has this name. */
    const tabTo = async (name: string) => {
      const focused = `(document.activeElement?.getAttribute('aria-label') || document.activeElement?.labels?.[0]?.innerText || document.activeElement?.innerText || '').trim()`;
      for (let turn = 0; turn < 60; turn += 1) {
        if ((await page.evaluate(focused)) === name) return;
        await page.keyboard.press('Tab');
      }
      throw new Error(`Tab does not reach ${name}`);
    };
    await press('/');
    await page.getByRole('combobox', { name: 'Page, action or model' }).waitFor();
    await page.keyboard.type('playground');
    await press('Enter');
    await page.getByRole('heading', { name: 'Playground' }).waitFor();
    await tabTo('Make a $1 key for an hour');
    await press('Enter');
    await page.getByText('expires in an hour').waitFor();
    // Sent without a required field: the page says what is missing, and focuses the field.
    await promptOf(page).focus();
    await page.keyboard.type('Say');
    await press('Control+Enter');
    await page.getByRole('status').getByText('Add a model first.').waitFor();
    for (const [label, model] of [
      ['Model', 'sandbox/story'],
      ['Compare with', 'sandbox/echo'],
    ] as const) {
      await tabTo(label);
      await page.keyboard.type(model);
      await press('Enter');
      await page.getByRole('button', { name: `Remove ${model}` }).waitFor();
    }
    await tabTo('Prompt');
    await page.keyboard.type(' this again');
    await press('Control+Enter');
    await isDone(page, 'sandbox/story');
    await isDone(page, 'sandbox/echo');
    await page.keyboard.press('Shift+Tab');
    await page.getByRole('heading', { name: 'Playground' }).focus();
    await tabTo('Edit prompt 1, or send it again');
    await press('Enter');
    await page.keyboard.type(', please');
    await press('Escape');
    // The focus returns to where the edit began.
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toBe('Edit');
    await press('Enter');
    await page.keyboard.type('X');
    await press('Control+Enter');
    await isDone(page, 'sandbox/echo');
    // The next text that is typed is the next prompt.
    await expect
      .poll(() => page.evaluate('document.activeElement === document.querySelector(".composer textarea")'))
      .toBe(true);
    await tabTo('Try sandbox/story again');
    await press('Enter');
    await isDone(page, 'sandbox/story');
    await expect
      .poll(() => page.evaluate('document.activeElement.getAttribute("aria-label")'))
      .toBe('Answer of sandbox/story');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test.each([
    [1_440, 'light'],
    [1_440, 'dark'],
    [360, 'light'],
    [360, 'dark'],
  ] as const)('at %d px, %s, nothing is too wide, and axe finds nothing in any state', async (width, colorScheme) => {
    const { page, faults } = await start('sandbox/tools,sandbox/think,scripted/blind,sandbox/json', {
      colorScheme,
      viewport: { width, height: 800 },
    });
    const check = async (state: string) => {
      expect([state, await findings(page)]).toEqual([state, []]);
      const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect([state, Number(overflow) > 0]).toEqual([state, false]);
    };
    for (const title of ['System prompt', 'Tools', 'JSON schema']) await openPart(page, title);
    await page.getByLabel('Tools, as JSON').fill(`${'x'.repeat(300)}`);
    await page.getByLabel('Schema, as JSON').fill('[');
    await check('not valid');
    await page.getByLabel('Tools, as JSON').fill(TOOLS);
    await page.getByLabel('Schema, as JSON').fill('');
    await page.locator('input[type=file]').setInputFiles([
      { name: `${'long-name-'.repeat(20)}.png`, mimeType: 'image/png', buffer: PNG },
      { name: 'a.svg', mimeType: 'image/svg+xml', buffer: SVG },
    ]);
    await promptOf(page).fill('What is this?');
    await page.getByRole('row', { name: 'Together' }).waitFor();
    await check('before sending');
    await page.getByRole('button', { name: 'Send to 4 models' }).click();
    await isDone(page, 'sandbox/think');
    await page.getByRole('button', { name: 'Send 2 results' }).first().waitFor();
    await page.getByText('Reasoning', { exact: true }).first().click();
    await check('answers');
    await page.getByRole('button', { name: 'Edit prompt 1' }).click();
    await check('editing');
    await page.getByRole('button', { name: 'Code' }).click();
    await check('code');
    expect(faults.filter((one) => !/status of 404/.test(one))).toEqual([]);
    await page.context().close();
  });
});
