import Type from 'typebox';
import { placeOf } from '../../accounts/byok.ts';
import type { Vault } from '../../accounts/vault.ts';
import { GatewayError } from '../../errors.ts';
import { callerName } from '../../http/principal.ts';
import { createRateLimit } from '../../http/rate-limit.ts';
import type { Server } from '../../http/server.ts';
import type { Clock } from '../../inference/call.ts';
import { dialects } from '../../providers/dialects.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Services } from '../../providers/transport/services.ts';
import { CredentialCheck } from '../../schemas/credential-check.ts';
import { errors } from '../../schemas/error.ts';
import type { ByokStore } from '../../storage/byok.ts';
import { requireByok } from '../byok/get-byok.ts';
import { actorOf, type Change, principalOf } from '../change.ts';
import { requireHome } from '../ledger/get-ledger-status.ts';
import { checkCredential } from './check-credential.ts';
import type { ConfiguredProviders } from './list-provider-credentials.ts';

const CHECKS_PER_MINUTE = 10;

export interface TestCredentialsDependencies {
  configured: () => ConfiguredProviders;
  byok: ByokStore;
  change: Change;
  vault: Vault;
  services: Pick<Services, 'ask'>;
  home: { organization_id: string };
  clock: Clock;
}

const ANSWERS = {
  200: Type.Object({ data: CredentialCheck }),
  ...errors(400, 401, 403, 404, 409, 429, 500),
};
const DESCRIPTION =
  `Asks the provider for the list of its models, which is free of charge: at most two requests, ${CHECKS_PER_MINUTE} tests a minute. ` +
  'The result is an entry in the audit. Neither the credential nor text of the provider is in the answer.';

/** Serves `POST /provider-credentials/{slug}/test` and `POST /byok/{id}/test`. */
export function testCredentials(server: Server, options: TestCredentialsDependencies): void {
  const { configured, byok, change, vault, services, home, clock } = options;
  const limit = createRateLimit(CHECKS_PER_MINUTE, clock, 'tests of credentials');

  const check = async (provider: Provider, credential: string | undefined): Promise<CredentialCheck> => {
    const dialect = dialects.get(provider.dialect);
    if (dialect === undefined) throw new GatewayError(409, `${provider.name} has no wire for chat to test with`);
    const from = clock.monotonicMs();
    const result = await checkCredential({ provider, dialect, credential, services, now_ms: clock.nowMs() });
    return { ...result, ms: Math.round(clock.monotonicMs() - from) };
  };

  server.route({
    method: 'POST',
    url: '/provider-credentials/:slug/test',
    config: { access: 'management' },
    schema: {
      operationId: 'testProviderCredential',
      tags: ['Credentials'],
      summary: "Tests the operator's credential of a provider.",
      description: `${DESCRIPTION} For management keys and administrators of the organization that runs the gateway.`,
      params: Type.Object({ slug: Type.String({ description: 'Slug of the provider.' }) }),
      response: ANSWERS,
    },
    handler: async (request) => {
      requireHome(request, home);
      const { slug } = request.params;
      const provider = configured().on.find((one) => one.slug === slug);
      if (provider === undefined) throw new GatewayError(404, `No provider ${slug} is on`);
      limit(callerName(principalOf(request)));
      const data = await check(provider, provider.credential);
      await change(actorOf(request), ({ audit }) =>
        audit({ action: 'test', resource_type: 'provider', resource_id: slug, before: null, after: data }),
      );
      return { data };
    },
  });

  server.route({
    method: 'POST',
    url: '/byok/:id/test',
    config: { access: 'management' },
    schema: {
      operationId: 'testByok',
      tags: ['BYOK'],
      summary: 'Tests a credential of your own provider account.',
      description: DESCRIPTION,
      params: Type.Object({ id: Type.String({ description: 'Identity of the credential.' }) }),
      response: ANSWERS,
    },
    handler: async (request) => {
      const { organization_id } = principalOf(request);
      const stored = await requireByok({ organization_id, id: request.params.id }, byok.find);
      const { on, own_only } = configured();
      const provider = [...on, ...own_only].find(({ slug }) => slug === stored.provider);
      if (provider === undefined)
        throw new GatewayError(409, `The provider ${stored.provider} cannot be called as this gateway is configured`);
      limit(callerName(principalOf(request)));
      let secret: string;
      try {
        secret = vault.open(stored.sealed, placeOf(stored));
      } catch (cause) {
        throw new GatewayError(
          409,
          'The stored credential cannot be read by this gateway: its secret has changed. Store it again',
          {
            cause,
          },
        );
      }
      const data = await check(provider, secret);
      await change(actorOf(request), ({ audit }) =>
        audit({ action: 'test', resource_type: 'byok_credential', resource_id: stored.id, before: null, after: data }),
      );
      return { data };
    },
  });
}
