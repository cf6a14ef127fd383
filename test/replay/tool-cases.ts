/** The gateway's own tools, filters of answers, repair of JSON and money that runs out, in every combination. */
import type { JsonObject } from '../../src/schemas/json.ts';
import type { TestGateway } from '../harness.ts';
import { type Exchange, responseHead, type Step } from '../wires/wire-server.ts';
import type { ClientApi } from './clients.ts';
import type { GroupRun, ReplayExchange, ReplayGroup } from './run-group.ts';
import { answer, requestOf, type Turn } from './scripted-turns.ts';

const APIS = ['chat', 'responses', 'messages'] as const satisfies readonly ClientApi[];
const FILTERS = ['unfiltered', 'redacted', 'blocked'] as const;
/**
 * Spend limits of keys: for everything; for a turn and a search, but not for the turn after them; for turns and no
 * search. A turn costs 0.0002 USD and is held with its output bound, a search costs 0.01.
 */
const MONEY = { paid: 1, 'second turn unpaid': 0.0103, 'search unpaid': 0.008 } as const;
type Money = keyof typeof MONEY;

const TOOLS: Readonly<Record<(typeof APIS)[number], JsonObject>> = {
  chat: { type: 'gateway:web_search', parameters: { max_results: 2 } },
  responses: { type: 'web_search' },
  messages: { type: 'web_search_20250305', name: 'web_search', max_uses: 2 },
};
const PAGES = [
  { url: 'https://a.example/one', title: 'One', text: 'The first page.' },
  { url: 'https://b.example/two', title: 'Two', text: 'The second page, of bob@example.com.' },
];
const USAGE = { prompt_tokens: 100, completion_tokens: 10 };
/** JSON that breaks off, with matches for filters. */
const BROKEN: Turn = {
  text: ['{"mail": "anna@exam', 'ple.com", "page"', ': "[One](https://a.example/one)",'],
  usage: USAGE,
};
/** The text before the search. */
const FIRST = ['I write to anna@', 'example.com first. '];

interface Combination {
  api: (typeof APIS)[number];
  stream: boolean;
  tools: 'none' | 'called' | 'called after text';
  filter: (typeof FILTERS)[number];
  repair: boolean;
  money: Money;
}

function combinations(): Combination[] {
  const all: Combination[] = [];
  for (const api of APIS)
    for (const stream of [false, true])
      for (const tools of ['none', 'called', 'called after text'] as const)
        for (const filter of FILTERS)
          for (const repair of [false, true])
            for (const money of Object.keys(MONEY) as Money[])
              if (tools !== 'none' || money === 'paid') all.push({ api, stream, tools, filter, repair, money });
  return all;
}

const nameOf = ({ api, stream, tools, filter, repair, money }: Combination): string =>
  [api, stream ? 'stream' : 'whole', `tools ${tools}`, filter, repair ? 'repaired' : 'unrepaired', money].join(', ');

function upstreamOf(run: GroupRun, { tools }: Combination): (exchange: Exchange) => Step[] {
  return (exchange) => {
    if (exchange.path.includes('/exa')) {
      const results = JSON.stringify({ requestId: 'r', results: PAGES });
      return [run.pass(50), responseHead(200, 'application/json'), results, 'END'];
    }
    const { messages, tools: declared } = JSON.parse(exchange.body) as {
      messages: { role: string }[];
      tools?: { function: { name: string } }[];
    };
    const name = declared?.[0]?.function.name;
    const isOver = messages.some(({ role }) => role === 'tool');
    if (tools === 'none' || isOver || name === undefined) return answer(run, exchange, BROKEN);
    const text = tools === 'called' ? {} : { text: FIRST };
    return answer(run, exchange, { ...text, calls: [{ name, args: { query: 'news' } }], usage: USAGE });
  };
}

async function managed(gateway: TestGateway, path: string, body: object): Promise<JsonObject> {
  const response = await gateway.call('POST', path, body, { authorization: `Bearer ${gateway.management_key}` });
  const answered = (await response.json()) as JsonObject;
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answered)}`);
  return answered;
}

/** A key for each combination, so that none spends another's money, with the guardrail of its filter. */
async function prepare(gateway: TestGateway): Promise<Record<string, string>> {
  const keys: Record<string, string> = {};
  const hashes: Record<string, string[]> = { redacted: [], blocked: [] };
  for (const combination of combinations()) {
    const name = nameOf(combination);
    const { key, data } = await managed(gateway, '/keys', { name: name.slice(0, 60), limit: MONEY[combination.money] });
    keys[name] = String(key);
    hashes[combination.filter]?.push(String((data as JsonObject)['hash']));
  }
  for (const [filter, action] of [
    ['redacted', 'redact'],
    ['blocked', 'block'],
  ] as const) {
    const contentFilterBuiltins = [{ slug: 'email', action }];
    const made = await managed(gateway, '/guardrails', {
      name: filter,
      content_filter_builtins: contentFilterBuiltins,
      content_filter_output: true,
    });
    const { id } = made['data'] as JsonObject;
    await managed(gateway, `/guardrails/${id}/assignments/keys`, { key_hashes: hashes[filter]! });
  }
  return keys;
}

export function toolCases(run: GroupRun): ReplayGroup {
  return {
    name: 'cases/tools',
    file: (upstreamUrl) => ({
      bundled_catalog: false,
      timeouts: { heartbeat_first_ms: 600_000, heartbeat_ms: 600_000 },
      plugins: {
        web: { engines: { exa: { api_key: 'k', base_url: `${upstreamUrl}/exa`, price_per_search_usd: 0.01 } } },
      },
      providers: { one: { name: 'One', dialect: 'openai-chat', base_url: upstreamUrl } },
      models: {
        'case/model': {
          context_length: 100_000,
          endpoints: [
            {
              provider: 'one',
              upstream_model: 'scripted',
              pricing: { prompt: 1, completion: 10 },
              max_completion_tokens: 1_000,
            },
          ],
        },
      },
      ledger: { journal_sync: 'os' },
    }),
    prepare,
    exchanges: combinations().map((combination): ReplayExchange => {
      const { api, stream, tools, repair } = combination;
      const more: JsonObject = {
        ...(tools === 'none' ? {} : { tools: [TOOLS[api]] }),
        ...(repair ? { plugins: [{ id: 'response-healing' }] } : {}),
      };
      const name = nameOf(combination);
      return {
        name,
        key: name,
        ...requestOf(api, { prompt: 'Whom do I write to?', stream, max_tokens: 20, json: true, more }),
        upstream: upstreamOf(run, combination),
      };
    }),
  };
}
