import { createSignInPath } from '../api/auth/sign-in-code.ts';
import { loadConfig } from '../config.ts';
import { identityStore } from '../storage/identities.ts';
import { localUrl } from './announce.ts';
import { type Command, common, Refusal, readArguments } from './command.ts';
import { type OpenStore, withStore } from './with-store.ts';

const USAGE = `Usage: model-gateway console [--email EMAIL] [--config FILE]

Prints a link that signs you in to the console once, within ten minutes.

  --email EMAIL  sign in as this member; default: the administrator of the longest standing
  --config FILE  the configuration file (default: GATEWAY_CONFIG, else ./gateway.yaml)
`;

/** The member to sign in. Throws a `Refusal` if there is none with this address. */
async function memberOf({ database, home }: OpenStore, email: string | undefined): Promise<string> {
  if (email === undefined) return home.owner_user_id;
  const user = await identityStore(database.queries).findByEmail(email);
  if (user === undefined) {
    throw new Refusal(`No member, or more than one, has the address ${email}. List them: model-gateway users list`);
  }
  return user.id;
}

/** `model-gateway console`: prints a one-time link to the console of the configured store, whether or not the gateway runs. */
export const consoleCommand: Command = {
  usage: USAGE,
  async run(args, environment) {
    const { values } = readArguments({ args, options: { config: common.config, email: { type: 'string' } } });
    const config = loadConfig(environment, { config_file: values.config });
    if (!config.console)
      throw new Refusal('The console is off. Remove GATEWAY_CONSOLE=off and start the gateway again.');
    const path = await withStore(config, async (store) => {
      const whose = { organization_id: store.home.organization_id, user_id: await memberOf(store, values.email) };
      return store.change(store.actor, (work) => createSignInPath(work, whose));
    });
    const origin = config.auth.public_origin ?? localUrl(`http://${config.host}:${config.port}`);
    process.stdout.write(
      `${origin}${path}\n\nThe link signs you in once, within ten minutes. Open it in your browser.\n`,
    );
    return 0;
  },
};
