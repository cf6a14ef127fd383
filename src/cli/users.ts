import { parseArgs } from 'node:util';
import { type Environment, loadConfig } from '../config.ts';
import { isStorable } from '../schemas/text.ts';
import { isUniqueViolation } from '../storage/database.ts';
import { identityStore } from '../storage/identities.ts';
import { memberStore } from '../storage/members.ts';
import { withStore } from './with-store.ts';

const USAGE = `Usage: model-gateway users add --email EMAIL [--name NAME] [--role admin|member] [--config FILE]
       model-gateway users list [--config FILE]
`;

const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,255}$/;

interface NewMember {
  email: string;
  name: string;
  role: 'admin' | 'member';
}

/** What the options of `users add` say, or what is wrong with them. */
function newMember(values: { email?: string; name?: string; role: string }): NewMember | string {
  const { email = '', name = email, role } = values;
  if (!EMAIL.test(email) || !isStorable(email)) return '--email must be an address such as ada@example.com';
  if (name.trim() === '' || name.length > 200 || !isStorable(name))
    return '--name must be a text of 1 to 200 characters';
  if (role !== 'admin' && role !== 'member') return '--role must be admin or member';
  return { email, name: name.trim(), role };
}

/** `model-gateway users add|list`: members of the organization, on the configured store, whether the gateway runs or not. */
export async function runUsers(args: string[], environment: Environment): Promise<number> {
  const { positionals, values } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      config: { type: 'string' },
      email: { type: 'string' },
      name: { type: 'string' },
      role: { type: 'string', default: 'member' },
    },
  });
  const config = loadConfig(environment, values.config === undefined ? {} : { config_file: values.config });
  if (positionals.length === 1 && positionals[0] === 'list') {
    return withStore(config, async ({ database, home }) => {
      for (let offset = 0; ; offset += 100) {
        const page = { offset, limit: 100 };
        const { data } = await memberStore(database.queries).listOrganization(home.organization_id, page);
        for (const { id, email, first_name, last_name, role } of data) {
          const name = [first_name, last_name].filter((part) => part !== null).join(' ');
          process.stdout.write(`${id}  ${role.replace('org:', '').padEnd(6)}  ${email ?? '-'}  ${name}\n`);
        }
        if (data.length < 100) return 0;
      }
    });
  }
  if (positionals.length !== 1 || positionals[0] !== 'add') {
    process.stderr.write(USAGE);
    return 2;
  }
  const member = newMember(values);
  if (typeof member === 'string') {
    process.stderr.write(`${member}\n`);
    return 2;
  }
  return withStore(config, async ({ change, actor }) => {
    try {
      const id = await change(actor, async ({ tx, at, audit }) => {
        const { email, name, role } = member;
        const [first_name = name, ...rest] = name === email ? [] : name.split(/\s+/);
        const names =
          name === email ? { first_name: null, last_name: null } : { first_name, last_name: rest.join(' ') || null };
        const user = { name, email, ...names, issuer: null, subject: null };
        const { organization_id } = actor;
        const made = await identityStore(tx).insertMember(user, { organization_id, role, at });
        await audit({
          action: 'create',
          resource_type: 'user',
          resource_id: made,
          before: null,
          after: { email, name, role },
        });
        return made;
      });
      process.stdout.write(`${id}\n`);
      return 0;
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      process.stderr.write(`There is a user with the address ${member.email} already.\n`);
      return 1;
    }
  });
}
