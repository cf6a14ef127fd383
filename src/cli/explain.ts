import { readFile } from 'node:fs/promises';
import { type Config, loadConfig } from '../config.ts';
import type { RouteExplanation } from '../schemas/route-explanation.ts';
import { type Command, common, printJson, Refusal, readArguments, UsageError } from './command.ts';
import { commandName } from './command-name.ts';
import { oneLine } from './one-line.ts';

const usage = `Usage: model-gateway explain MODEL [--prompt TEXT] [--url URL] [--json] [--config FILE]
       model-gateway explain --body FILE [--url URL] [--json] [--config FILE]

Asks a running gateway where a chat request would be sent, what it may cost, and why each endpoint has its position or is excluded.
Nothing is sent to a provider. The variable GATEWAY_KEY names the API key that would make the request.
  --body  a file with the whole request, as JSON
  --url   the gateway; by default the one of this configuration, on this machine
`;

const ANSWER_MS_MAX = 30_000;

/** `model-gateway explain`. */
export const explainCommand: Command = {
  usage,
  async run(args, environment) {
    const text = { type: 'string' } as const;
    const { positionals, values } = readArguments({
      args,
      allowPositionals: true,
      options: { ...common, body: text, prompt: text, url: text },
    });
    const [model, ...rest] = positionals;
    const isOne = (model === undefined) !== (values.body === undefined);
    if (rest.length > 0 || !isOne || (values.body !== undefined && values.prompt !== undefined)) throw new UsageError();
    const key = environment['GATEWAY_KEY'];
    if (key === undefined || key === '') {
      const example = `export GATEWAY_KEY=$(${commandName()} keys create --name explain)`;
      throw new Refusal(`GATEWAY_KEY is not set: it must hold an API key. Create one: ${example}`);
    }
    const body =
      values.body === undefined
        ? { model, messages: [{ role: 'user', content: values.prompt ?? 'Hello' }] }
        : await bodyOf(values.body);
    const url = values.url ?? localUrl(loadConfig(environment, { config_file: values.config }));
    const explanation = await fetchExplanation(url.replace(/\/+$/, ''), key, body);
    if (values.json) printJson(explanation);
    else process.stdout.write(textOf(explanation));
    return explanation.error === null ? 0 : 1;
  },
};

function localUrl({ host, port }: Config): string {
  const address = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

async function bodyOf(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Refusal(`${file} cannot be read (${error.code ?? 'unknown error'}).`);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(`${file} is not JSON.`);
  }
}

async function fetchExplanation(url: string, key: string, body: unknown): Promise<RouteExplanation> {
  const response = await fetch(`${url}/api/v1/route/explain`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  }).catch((error: Error & { cause?: NodeJS.ErrnoException }) => {
    const why = error.cause?.code ?? error.name;
    throw new Refusal(`No gateway answers at ${url} (${why}). Start it, or set --url to another gateway.`);
  });
  const answer = (await response.json().catch(() => undefined)) as
    | { data?: RouteExplanation; error?: { message?: string } }
    | undefined;
  if (response.ok && answer?.data !== undefined) return answer.data;
  throw new Refusal(
    `${url} refuses to explain (${response.status}): ${oneLine(answer?.error?.message ?? 'no reason')}`,
  );
}

const usd = (amount: number | null) => (amount === null ? 'unknown' : `$${amount}`);

function textOf({ requested, models, strategy, sort, endpoints, hold, error, warnings }: RouteExplanation): string {
  const planned = endpoints.planned.map((endpoint) => {
    const facts = [
      ...(endpoint.weight === null ? [] : [`drawn first in ${Math.round(endpoint.weight * 100)} % of requests`]),
      `expected cost ${usd(endpoint.expected_cost)}, at most ${usd(endpoint.worst_case_cost)}`,
      ...(endpoint.health.cooling_down_until === null
        ? []
        : [`cools down until ${endpoint.health.cooling_down_until}`]),
      ...(endpoint.refusal === null ? [] : [`refused: ${endpoint.refusal.message}`]),
    ];
    const because = endpoint.because.length === 0 ? [] : [`     because: ${endpoint.because.join('; ')}`];
    return [`  ${endpoint.position}. ${endpoint.tag}  ${endpoint.model}  ${facts.join(', ')}`, ...because];
  });
  const excluded = endpoints.excluded.map(({ tag, model, step, reason }) => `  ${tag}  ${model}  ${step}: ${reason}`);
  const unplanned = endpoints.unplanned.map(({ tag, model }) => `  ${tag}  ${model}`);
  const section = (title: string, rows: string[]) => (rows.length === 0 ? [] : ['', title, ...rows]);
  const lines = [
    `${requested}: ${models.join(', ') || 'no model'} (${strategy}, ${sort === null ? 'drawn by price' : `sorted by ${sort}`})`,
    ...section('Tried in this order:', planned.flat()),
    ...section('Allowed, but not in the plan:', unplanned),
    ...section('Left out:', excluded),
    ...(hold === null ? [] : ['', `Reserved while it runs: ${usd(hold.amount)}`]),
    ...warnings.map(({ message }) => `Warning: ${message}`),
    ...(error === null ? [] : ['', `It would be refused with ${error.code}: ${error.message}`]),
  ];
  return `${lines.map(oneLine).join('\n')}\n`;
}
