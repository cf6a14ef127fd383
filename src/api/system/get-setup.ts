import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import { daysLeft, expiryWarnings } from '../../catalog/expiry.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Setup } from '../../schemas/system.ts';
import type { Database } from '../../storage/database.ts';
import { type SetupFacts, setupStore } from '../../storage/setup.ts';
import { principalOf } from '../change.ts';
import type { SystemFacts } from './system-facts.ts';

const WARNINGS_OF_A_KIND_MAX = 20;
/** The days before a model's last day from which it is reported. */
const EXPIRY_NOTICE_DAYS = 30;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1|\[::1\])$/;

export interface GetSetupDependencies {
  database: Database;
  catalog: () => Catalog;
  now: () => number;
  system: () => SystemFacts;
}

type Step = Setup['steps'][number];
type Warning = Setup['warnings'][number];

/** Serves `GET /setup`. */
export function getSetup(server: Server, { database, catalog, now, system }: GetSetupDependencies): void {
  server.route({
    method: 'GET',
    url: '/setup',
    config: { access: 'management' },
    schema: {
      operationId: 'getSetup',
      tags: ['System'],
      summary: 'Returns which first steps are done, and what should be looked at before others use the gateway.',
      description:
        'Each step has its actual state and a command that completes it. For management keys and administrators.',
      response: { 200: Type.Object({ data: Setup }), ...errors(401, 403, 429, 500) },
    },
    handler: async (request) => {
      const store = setupStore(database.queries);
      const [facts, isDemo] = await Promise.all([store.facts(principalOf(request).organization_id), store.isDemo()]);
      const running = system();
      const warnings = [
        ...operatorWarnings(running, facts, database.engine),
        ...modelWarnings(running, catalog(), now()),
      ];
      return { data: { is_demo: isDemo, steps: stepsOf(running, facts), warnings } };
    },
  });
}

function stepsOf({ providers, host, public_origin }: SystemFacts, facts: SetupFacts): Step[] {
  const real = providers.filter(({ is_sandbox }) => is_sandbox !== true);
  const more = real.length > 1 ? ` and ${real.length - 1} more` : '';
  const { first_key, first_call, limit, first_sign_in, members } = facts;
  const address = public_origin ?? `http://${LOOPBACK.test(host) ? host : '127.0.0.1'}:8080`;
  return [
    {
      step: 'provider',
      title: 'Add a provider',
      is_done: real.length > 0,
      at: null,
      detail:
        real.length > 0
          ? `${real[0]?.name}${more} ${real.length > 1 ? 'are' : 'is'} on.`
          : 'Only the sandbox answers: a simulated provider with simulated costs. Start the gateway with the key of a provider.',
      command: 'OPENAI_API_KEY=sk-… npm start',
    },
    {
      step: 'key',
      title: 'Create a key',
      is_done: first_key !== undefined,
      at: first_key?.created_at ?? null,
      detail:
        first_key === undefined ? 'Programs call models with API keys.' : `The first key is named “${first_key.name}”.`,
      command: 'model-gateway keys create --name laptop',
    },
    {
      step: 'first_call',
      title: 'Send the first request',
      is_done: first_call !== undefined,
      at: first_call?.day ?? null,
      detail:
        first_call === undefined
          ? 'Any OpenAI SDK works with the address of the gateway.'
          : `The first call was for ${first_call.model}.`,
      command: `curl -s ${address}/api/v1/chat/completions -H "Authorization: Bearer $GATEWAY_KEY" -H "Content-Type: application/json" -d '{"model": "MODEL", "messages": [{"role": "user", "content": "Hello"}]}'`,
    },
    {
      step: 'limit',
      title: 'Limit what may be spent',
      is_done: limit !== undefined,
      at: limit?.created_at ?? null,
      detail:
        limit === undefined
          ? 'A limit is never exceeded: the cost of each call is reserved before it is sent.'
          : `“${limit.name}” has a limit.`,
      command: 'model-gateway keys create --name ci --limit 5 --limit-reset daily',
    },
    {
      step: 'console',
      title: 'Sign in, and invite your team',
      is_done: first_sign_in !== undefined || members > 1,
      at: first_sign_in ?? null,
      detail:
        members > 1
          ? `The organization has ${members} members.`
          : first_sign_in === undefined
            ? 'Nobody has signed in to the console yet.'
            : 'You have signed in; nobody else is a member yet.',
      command: 'model-gateway users add --email ada@example.com --role member',
    },
  ];
}

function operatorWarnings(
  { providers, host, public_origin, has_own_secret }: SystemFacts,
  { has_credentials }: SetupFacts,
  engine: Database['engine'],
): Warning[] {
  const warnings: Warning[] = [];
  if (providers.every(({ is_sandbox }) => is_sandbox === true))
    warnings.push({
      warning: 'no_provider',
      message: 'No provider is on: answers come from the sandbox, which invents them.',
      command: 'OPENAI_API_KEY=sk-… npm start',
    });
  if (!LOOPBACK.test(host) && public_origin?.startsWith('https:') !== true)
    warnings.push({
      warning: 'no_tls',
      message:
        'The gateway listens beyond this machine and no address with https is set: keys and sessions cross the network unencrypted. Put a proxy with TLS in front and set auth.public_url.',
      command: 'auth: { public_url: https://gateway.example.com }',
    });
  if (!has_own_secret && engine === 'postgres')
    warnings.push({
      warning: 'secret_per_node',
      message:
        'GATEWAY_SECRET is not set: each node has a secret of its own, and cannot read the provider credentials that another node stores. Set the same secret on all nodes.',
      command: 'GATEWAY_SECRET="$(openssl rand -hex 32)"',
    });
  if (!has_own_secret && engine === 'sqlite' && has_credentials)
    warnings.push({
      warning: 'secret_beside_data',
      message:
        'Provider credentials are encrypted with the secret in the data directory: anyone who copies the directory can read them. Keep the secret elsewhere, set it as GATEWAY_SECRET and remove the file.',
      command: 'GATEWAY_SECRET="$(cat data/secret)"',
    });
  return warnings;
}

function modelWarnings({ models }: SystemFacts, catalog: Catalog, nowMs: number): Warning[] {
  const declared = new Set(models.map(({ id }) => id));
  const unpriced = catalog
    .models()
    .filter(
      ({ id, endpoints }) =>
        declared.has(id) &&
        endpoints.length > 0 &&
        endpoints.every(({ pricing }) => Object.values(pricing).every((price) => price === undefined)),
    );
  const dated = models.flatMap(({ id, expiration_date }) =>
    expiration_date !== undefined && daysLeft(expiration_date, nowMs) <= EXPIRY_NOTICE_DAYS
      ? [{ id, expiration_date }]
      : [],
  );
  return [
    ...unpriced.slice(0, WARNINGS_OF_A_KIND_MAX).map(({ id }) => ({
      warning: 'unpriced_model' as const,
      message: `The price of ${id} is not known: calls of it are refused, or their cost is not counted (ledger.unknown_price). Set its pricing in gateway.yaml.`,
      command: null,
    })),
    ...expiryWarnings(dated, nowMs)
      .slice(0, WARNINGS_OF_A_KIND_MAX)
      .map(({ type, message }) => ({ warning: type, message: `${message}.`, command: null })),
  ];
}
