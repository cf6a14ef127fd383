import { endSignIns, removeMember } from '../api/organization/remove-member.ts';
import { loadConfig } from '../config.ts';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { isStorable, lowerAscii } from '../schemas/text.ts';
import { isUniqueViolation, type Queries } from '../storage/database.ts';
import { identityStore } from '../storage/identities.ts';
import { memberStore, type NamedMember } from '../storage/members.ts';
import { organizationStore } from '../storage/organizations.ts';
import { type Command, common, Refusal, readArguments, UsageError } from './command.ts';
import { oneLine } from './one-line.ts';
import { type OpenStore, withStore } from './with-store.ts';

const USAGE = `Usage: model-gateway users add --email EMAIL [--name NAME] [--role admin|member] [--config FILE]
       model-gateway users set USER [--email EMAIL] [--name NAME] [--role admin|member] [--config FILE]
       model-gateway users remove USER [--hand-keys-to USER] [--config FILE]
       model-gateway users sign-out USER [--config FILE]
       model-gateway users list [--json] [--config FILE]

USER is an id or an e-mail address. The role in the organization is that in every workspace. remove ends sessions and
memberships and disables the keys; with --hand-keys-to, another member takes over those that are no management keys. Who was
removed cannot sign in again before they are added again, and gets nothing back by that. sign-out ends the sessions of a
member in all browsers; unused sign-in links and codes of applications become void. The member and its keys stay.
`;

type Role = 'admin' | 'member';

/** The options for a user. An omitted option is not set. */
interface Described {
  email?: string;
  name?: string;
  role?: Role;
}

type Newcomer = Described & { email: string };

const EMAIL = /^[^\s@]+@[^\s@]+$/;

function describedBy(values: { email?: string; name?: string; role?: string }): Described {
  const { email, role } = values;
  const name = values.name?.trim();
  if (email !== undefined && !(EMAIL.test(email) && isStorable(email) && email.length <= limits.email_chars_max)) {
    throw new UsageError('--email must be an address such as ada@example.com.');
  }
  if (name !== undefined && !(name !== '' && isStorable(name) && name.length <= limits.user_name_chars_max)) {
    throw new UsageError(`--name must be a text of 1 to ${limits.user_name_chars_max} characters.`);
  }
  if (role !== undefined && role !== 'admin' && role !== 'member') {
    throw new UsageError('--role must be admin or member.');
  }
  return {
    // Addresses that differ only in capitals belong to one person.
    ...(email === undefined ? {} : { email: lowerAscii(email) }),
    ...(name === undefined ? {} : { name }),
    ...(role === undefined ? {} : { role }),
  };
}

function namesOf(name: string) {
  const [firstName = name, ...rest] = name.split(/\s+/);
  return { name, first_name: firstName, last_name: rest.length === 0 ? null : rest.join(' ') };
}

async function membersOf(queries: Queries, organizationId: string): Promise<NamedMember[]> {
  const members: NamedMember[] = [];
  const limit = limits.page_records_max;
  for (;;) {
    const page = { offset: members.length, limit };
    const { data } = await memberStore(queries).listOrganization(organizationId, page);
    members.push(...data);
    if (data.length < limit) return members;
  }
}

/** Runs a write. Throws a `Refusal` if it sets an address that another user has. */
async function withFreeEmail<T>(email: string | undefined, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new Refusal(`A user with the address ${email} exists already.`);
  }
}

function add({ change, actor }: OpenStore, { email, name, role = 'member' }: Newcomer): Promise<string> {
  return withFreeEmail(email, () =>
    change(actor, async ({ tx, at, audit }) => {
      const users = identityStore(tx);
      const { organization_id } = actor;
      const former = await users.findByEmail(email);
      if (former !== undefined && !(await organizationStore(tx).findMember({ organization_id, user_id: former.id }))) {
        // A removed user: the sign-in is known again, and nothing that was removed is restored.
        if (name !== undefined) await users.update(former.id, namesOf(name));
        await users.addMember(former.id, { organization_id, role, at });
        const after = { email, name: name ?? former.name, role };
        await audit({ action: 'create', resource_type: 'user', resource_id: former.id, before: null, after });
        return former.id;
      }
      if (await users.hasEmail(email)) throw new Refusal(`A user with the address ${email} exists already.`);
      const names = name === undefined ? { name: email, first_name: null, last_name: null } : namesOf(name);
      const user = { ...names, email, issuer: null, subject: null };
      const id = await users.insertMember(user, { organization_id, role, at });
      const after = { email, name: names.name, role };
      await audit({ action: 'create', resource_type: 'user', resource_id: id, before: null, after });
      return id;
    }),
  );
}

/** The member with an id or an address. Throws a `Refusal` if there is none. */
async function memberNamed(queries: Queries, organizationId: string, who: string): Promise<NamedMember> {
  const member = (await membersOf(queries, organizationId)).find(
    ({ id, email }) => id === who || (email !== null && lowerAscii(email) === lowerAscii(who)),
  );
  if (!member) throw new Refusal(`There is no member ${who}; 'users list' shows the members.`);
  return member;
}

async function set(store: OpenStore, who: string, wanted: Described): Promise<string> {
  const { email, name, role } = wanted;
  return withFreeEmail(email, () =>
    store.change(store.actor, async ({ tx, audit, announce }) => {
      const { organization_id } = store.actor;
      const [users, members] = [identityStore(tx), memberStore(tx)];
      const { id: userId } = await memberNamed(tx, organization_id, who);
      const roles = await members.lockForRoles(organization_id, [userId]);
      // Read again now that nobody else can change it.
      const member = await memberNamed(tx, organization_id, userId);
      const current = roles.get(userId);
      const hasOtherAdmin = [...roles].some(([id, other]) => other === 'admin' && id !== userId);
      if (role === 'member' && !hasOtherAdmin)
        throw new Refusal('The last administrator must keep this role; make another member an administrator first.');
      if (email !== undefined && email !== lowerAscii(member.email ?? '') && (await users.hasEmail(email))) {
        throw new Refusal(`A user with the address ${email} exists already.`);
      }
      const names = { ...(email === undefined ? {} : { email }), ...(name === undefined ? {} : namesOf(name)) };
      if (Object.keys(names).length > 0) await users.update(userId, names);
      if (role !== undefined) await members.setRole({ organization_id, user_id: userId, role });
      const before = { email: member.email, name: member.name, role: current };
      const after = { ...before, ...wanted };
      await audit({ action: 'update', resource_type: 'user', resource_id: userId, before, after });
      announce({ topic: 'policy', id: userId });
      return userId;
    }),
  );
}

/** Removes a member. Returns a line about the keys and sessions. */
async function remove(store: OpenStore, who: string, to: string | undefined): Promise<string> {
  const { actor, change } = store;
  try {
    const removed = await change(actor, async (work) => {
      const named = async (user: string) => (await memberNamed(work.tx, actor.organization_id, user)).id;
      const heir = to === undefined ? undefined : await named(to);
      return removeMember(work, { user_id: await named(who), hand_keys_to: heir });
    });
    const { keys_disabled, keys_handed_over, sessions_ended } = removed;
    return `removed: ${keys_disabled} keys disabled, ${keys_handed_over} handed over, ${sessions_ended} sessions ended`;
  } catch (error) {
    if (error instanceof GatewayError && error.status < 500) throw new Refusal(`${error.message}.`);
    throw error;
  }
}

/** Ends all sessions of a member. Returns a line about them. */
async function signOut({ actor, change }: OpenStore, who: string): Promise<string> {
  const ended = await change(actor, async (work) => {
    const { id } = await memberNamed(work.tx, actor.organization_id, who);
    // A concurrent sign-in either precedes this lock and is ended, or follows the change.
    await organizationStore(work.tx).lockMember({ organization_id: actor.organization_id, user_id: id });
    return endSignIns(work, id);
  });
  return `signed out: ${ended} sessions ended`;
}

async function list(store: OpenStore, asJson: boolean): Promise<string> {
  const members = await membersOf(store.database.queries, store.home.organization_id);
  if (asJson) {
    const shown = members.map(({ id, role, email, name }) => ({ id, role: role.replace('org:', ''), email, name }));
    return JSON.stringify(shown, null, 2);
  }
  const rows = members.map(
    ({ id, role, email, name }) =>
      `${id}  ${role.replace('org:', '').padEnd(6)}  ${oneLine(email ?? '-')}  ${oneLine(name)}`,
  );
  return rows.join('\n');
}

/** The action of the command's words; undefined if there is none. */
function actionOf(
  positionals: readonly string[],
  wanted: Described,
  { handKeysTo, asJson }: { handKeysTo: string | undefined; asJson: boolean },
): ((store: OpenStore) => Promise<string>) | undefined {
  const [verb, who, ...rest] = positionals;
  const none = Object.keys(wanted).length === 0;
  const { email } = wanted;
  if (verb === 'remove' && who !== undefined && rest.length === 0 && none) {
    return (store) => remove(store, who, handKeysTo);
  }
  if (handKeysTo !== undefined) return undefined;
  if (verb === 'sign-out' && who !== undefined && rest.length === 0 && none) return (store) => signOut(store, who);
  if (verb === 'list' && who === undefined && none) return (store) => list(store, asJson);
  if (verb === 'add' && who === undefined && email !== undefined) return (store) => add(store, { ...wanted, email });
  if (verb === 'set' && who !== undefined && rest.length === 0 && !none) return (store) => set(store, who, wanted);
  return undefined;
}

/** `model-gateway users add|set|remove|sign-out|list`: members of the organization, in the configured store, whether or not the gateway runs. */
export const usersCommand: Command = {
  usage: USAGE,
  async run(args, environment) {
    const text = { type: 'string' } as const;
    const { positionals, values } = readArguments({
      args,
      allowPositionals: true,
      options: { ...common, email: text, 'hand-keys-to': text, name: text, role: text },
    });
    const chosen = { handKeysTo: values['hand-keys-to'], asJson: values.json };
    const action = actionOf(positionals, describedBy(values), chosen);
    if (action === undefined) throw new UsageError();
    const config = loadConfig(environment, { config_file: values.config });
    process.stdout.write(`${await withStore(config, action)}\n`);
    return 0;
  },
};
