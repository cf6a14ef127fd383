/** Texts of callers, administrators and providers are shown as text on every page: none becomes an element, a script or a link that runs. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { arrive, BROWSER, type ConsoleBrowser, SLOW, startConsole } from './browser.ts';

const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"'&{{x}}\u202e`;
const LINK = 'javascript:window.hacked=1';
/** The texts that a header can carry. */
const HEADER = HOSTILE.replace('\u202e', '');
const MODEL = 'hostile/m';

/** A provider whose every text is hostile: the answer, tool calls, sources, names and errors. */
function hostileProvider(): Server {
  return createServer((request, response) => {
    let body = '';
    request.on('data', (part) => {
      body += part;
    });
    request.on('end', () => {
      response.setHeader('content-type', 'application/json');
      if (request.url?.endsWith('/models')) {
        response.end(JSON.stringify({ data: [{ id: HOSTILE, name: HOSTILE, owned_by: HOSTILE }] }));
        return;
      }
      if (body.includes('please fail')) {
        response.statusCode = 400;
        response.end(JSON.stringify({ error: { message: HOSTILE, type: HOSTILE, code: HOSTILE } }));
        return;
      }
      const message = {
        role: 'assistant',
        content: `${HOSTILE} [link](${LINK})`,
        reasoning: HOSTILE,
        tool_calls: [
          { id: HOSTILE, type: 'function', function: { name: 'f', arguments: JSON.stringify({ a: HOSTILE }) } },
        ],
        annotations: [
          { type: 'url_citation', url_citation: { url: LINK, title: HOSTILE, start_index: 0, end_index: 5 } },
        ],
      };
      const choices = [{ index: 0, message, finish_reason: HOSTILE }];
      const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
      response.end(JSON.stringify({ id: HOSTILE, model: HOSTILE, choices, usage, system_fingerprint: HOSTILE }));
    });
  }).listen(0, '127.0.0.1');
}

describe.skipIf(BROWSER === undefined)('hostile texts in a browser', SLOW, () => {
  let open: ConsoleBrowser;
  const provider = hostileProvider();
  const ids: string[] = [];
  let keyHash = '';
  let guardrail = '';

  async function manage(method: string, path: string, body?: object) {
    const headers = { authorization: `Bearer ${open.gateway.management_key}`, 'content-type': 'application/json' };
    const init = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
    const answer = await fetch(`${open.gateway.base_url}${path}`, init);
    expect([path, answer.status < 300]).toEqual([path, true]);
    return (await answer.json()) as { key: string; data: { id: string; hash: string } & { id: string }[] };
  }

  beforeAll(async () => {
    const { port } = provider.address() as AddressInfo;
    open = await startConsole({
      yaml: `
providers:
  hostile:
    name: ${JSON.stringify(HOSTILE)}
    dialect: openai-chat
    base_url: http://127.0.0.1:${port}/v1
    api_key: k
models:
  ${MODEL}:
    name: ${JSON.stringify(HOSTILE)}
    description: ${JSON.stringify(`${HOSTILE} [link](${LINK})`)}
    context_length: 100000
    endpoints:
      - { provider: hostile, upstream_model: ${JSON.stringify(HOSTILE)}, pricing: { prompt: 1, completion: 2 }, supported_parameters: [tools, tool_choice] }
`,
    });
    const { data: workspaces } = await manage('GET', '/workspaces');
    await manage('PATCH', `/workspaces/${workspaces[0]?.id}`, {
      name: HOSTILE.slice(0, 60),
      description: HOSTILE,
      is_observability_io_logging_enabled: true,
      io_logging_sampling_rate: 1,
    });
    const made = await manage('POST', '/keys', { name: HOSTILE, limit: 5, limit_reset: 'daily' });
    keyHash = made.data.hash;
    guardrail = (
      await manage('POST', '/guardrails', {
        name: HOSTILE,
        description: HOSTILE,
        limit_usd: 20,
        reset_interval: 'weekly',
        content_filters: [{ pattern: 'codename-[0-9]+', action: 'redact', label: HOSTILE.slice(0, 90) }],
      })
    ).data.id;
    await manage('POST', `/guardrails/${guardrail}/assignments/keys`, { key_hashes: [keyHash] });
    await manage('POST', '/byok', { provider: 'openai', key: 'sk-planted-0123456789', name: HOSTILE.slice(0, 90) });
    const headers = {
      authorization: `Bearer ${made.key}`,
      'x-title': HEADER,
      'http-referer': `https://app.example/?${HEADER.replaceAll(' ', '+')}`,
      'x-gateway-tags': HEADER.replaceAll(',', ' ').slice(0, 60),
    };
    for (const text of ['hello codename-7', 'please fail']) {
      for (const path of ['/chat/completions', '/responses', '/messages']) {
        const content = `${HOSTILE} ${text}`;
        const question = path === '/responses' ? { input: content } : { messages: [{ role: 'user', content }] };
        const tool = { name: 'f', description: HOSTILE };
        const parameters = { type: 'object', properties: { a: { type: 'string', description: HOSTILE } } };
        const tools = {
          '/chat/completions': [{ type: 'function', function: { ...tool, parameters } }],
          '/responses': [{ type: 'function', ...tool, parameters }],
          '/messages': [{ ...tool, input_schema: parameters }],
        }[path];
        const body = { model: MODEL, max_tokens: 50, user: HOSTILE, session_id: `run ${HOSTILE}`, tools, ...question };
        const answer = await open.gateway.call('POST', path, body, headers);
        await answer.text();
        expect([path, text, answer.status]).toEqual([path, text, text === 'please fail' ? 400 : 200]);
        ids.push(answer.headers.get('x-generation-id') ?? '');
      }
    }
    await open.recorded(...ids);
  }, SLOW.timeout);
  afterAll(async () => {
    await open.stop();
    provider.close();
  });

  const pages = () => [
    '',
    'usage?by=model&by2=tag',
    'usage?by=app&by2=key',
    'keys',
    `keys?id=${keyHash}`,
    'logs',
    'logs?columns=key,user,session,app,model,provider,status,finish,guardrail',
    ...ids.map((id) => `logs?id=${id}`),
    'sessions',
    `sessions?id=${encodeURIComponent(`run ${HOSTILE}`)}`,
    'budgets',
    `budgets?key=${keyHash}`,
    'guardrails',
    `guardrails?id=${guardrail}`,
    'routing',
    `routing?key=${keyHash}&model=${encodeURIComponent(MODEL)}`,
    'models',
    `models?id=${encodeURIComponent(MODEL)}`,
    `playground?models=${encodeURIComponent(MODEL)}`,
    'workspaces',
    'audit',
    'credentials?all=1',
    'ledger',
    'system?source=all',
    `logs?model=${encodeURIComponent(HOSTILE)}`,
    `keys?id=${encodeURIComponent(HOSTILE)}`,
  ];

  test('stay text on every page with every element opened', { timeout: 600_000 }, async () => {
    const { page, foreign } = await open.visit();
    let shown = 0;
    for (const path of pages()) {
      await arrive(page, `${open.gateway.url}/${path}`);
      await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true');
      const result = await page.evaluate(`({
        hacked: window.hacked ?? 'no',
        elements: document.querySelectorAll('main img, main script, main iframe, [onerror], dialog img, dialog script').length,
        links: [...document.querySelectorAll('a')].filter((one) => /^\\s*(javascript|data):/i.test(one.getAttribute('href') ?? '')).length,
        shows: document.body.innerText.includes('<img src=x'),
      })`);
      const { shows, ...faults } = result as { shows: boolean };
      expect([path, faults]).toEqual([path, { hacked: 'no', elements: 0, links: 0 }]);
      if (shows) shown += 1;
    }
    expect(shown).toBeGreaterThan(12);
    expect(foreign).toEqual([]);
    await page.context().close();
  });
});
