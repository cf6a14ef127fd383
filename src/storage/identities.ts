import { randomUUID } from 'node:crypto';
import { lowerAscii } from '../schemas/text.ts';
import type { Queries } from './database.ts';
import { nextNumber } from './sequence.ts';

/** A user to be; `issuer` and `subject` say who that is at an OpenID Connect issuer, where one is known. */
export interface NewUser {
  name: string;
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  issuer: string | null;
  subject: string | null;
}

/** Users with an address. The engines disagree on what `lower` does beyond A to Z; what it finds is looked at again. */
async function withEmail(queries: Queries, email: string) {
  const wanted = lowerAscii(email);
  const found = await queries
    .selectFrom('users')
    .selectAll()
    .where(({ eb, fn, or }) => or([eb('email', '=', email), eb(fn<string>('lower', ['email']), '=', wanted)]))
    .execute();
  return found.filter((user) => user.email !== null && lowerAscii(user.email) === wanted);
}

/** Users by who they are elsewhere. */
export function identityStore(queries: Queries) {
  const addMember = async (
    user_id: string,
    { organization_id, role, at }: { organization_id: string; role: 'admin' | 'member'; at: string },
  ): Promise<void> => {
    await queries
      .insertInto('organization_members')
      .values({
        id: randomUUID(),
        organization_id,
        user_id,
        role,
        created_at: at,
        seq: await nextNumber(queries, 'organization_members'),
      })
      .execute();
  };
  return {
    findBySubject: ({ issuer, subject }: { issuer: string; subject: string }) =>
      queries
        .selectFrom('users')
        .selectAll()
        .where('issuer', '=', issuer)
        .where('subject', '=', subject)
        .executeTakeFirst(),

    /** The one user with an address, however it is capitalized; undefined when there are several. */
    findByEmail: async (email: string) => {
      const found = await withEmail(queries, email);
      return found.length === 1 ? found[0] : undefined;
    },

    /** Whether anybody has an address, however it is capitalized. */
    hasEmail: async (email: string): Promise<boolean> => (await withEmail(queries, email)).length > 0,

    /** Changes what people call a user. */
    update: async (id: string, names: Partial<Omit<NewUser, 'issuer' | 'subject'>>): Promise<void> => {
      await queries.updateTable('users').set(names).where('id', '=', id).execute();
    },

    /** Says who a user is elsewhere, unless that is said already. */
    link: async (user: { id: string; issuer: string; subject: string }): Promise<boolean> => {
      const { numUpdatedRows } = await queries
        .updateTable('users')
        .set({ issuer: user.issuer, subject: user.subject })
        .where('id', '=', user.id)
        .where('issuer', 'is', null)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },

    /** Makes a user and a member of an organization. */
    insertMember: async (
      user: NewUser,
      { organization_id, role, at }: { organization_id: string; role: 'admin' | 'member'; at: string },
    ): Promise<string> => {
      const id = randomUUID();
      await queries
        .insertInto('users')
        .values({ id, ...user, created_at: at })
        .execute();
      await addMember(id, { organization_id, role, at });
      return id;
    },

    /** Makes a user whom there is a member of an organization. */
    addMember,
  };
}
