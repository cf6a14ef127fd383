import { randomUUID } from 'node:crypto';
import { lowerAscii } from '../schemas/text.ts';
import type { Queries } from './queries.ts';
import { nextNumber } from './sequence.ts';

/** A new user; `issuer` and `subject` are its identity at an OpenID Connect issuer, if known. */
export interface NewUser {
  name: string;
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  issuer: string | null;
  subject: string | null;
}

/** The users with an email address. The engines' `lower` differ beyond A to Z, so the rows are compared again here. */
async function withEmail(queries: Queries, email: string) {
  const wanted = lowerAscii(email);
  const rows = await queries
    .selectFrom('users')
    .selectAll()
    .where(({ eb, fn, or }) => or([eb('email', '=', email), eb(fn<string>('lower', ['email']), '=', wanted)]))
    .execute();
  return rows.filter((user) => user.email !== null && lowerAscii(user.email) === wanted);
}

/** Users by their identity at an issuer, and by email address. */
export function identityStore(queries: Queries) {
  const addMember = async (
    userId: string,
    { organization_id, role, at }: { organization_id: string; role: 'admin' | 'member'; at: string },
  ): Promise<void> => {
    await queries
      .insertInto('organization_members')
      .values({
        id: randomUUID(),
        organization_id,
        user_id: userId,
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

    /** The one user with an address, in any capitalization; undefined if there are several or none. */
    findByEmail: async (email: string) => {
      const users = await withEmail(queries, email);
      return users.length === 1 ? users[0] : undefined;
    },

    /** All users with an address, in any capitalization. */
    findAllByEmail: (email: string) => withEmail(queries, email),

    /** Whether any user has an address, in any capitalization. */
    hasEmail: async (email: string): Promise<boolean> => (await withEmail(queries, email)).length > 0,

    /** Updates a user's names and address. */
    update: async (id: string, names: Partial<Omit<NewUser, 'issuer' | 'subject'>>): Promise<void> => {
      await queries.updateTable('users').set(names).where('id', '=', id).execute();
    },

    /** Sets a user's identity at an issuer; false if it has one already. */
    link: async (user: { id: string; issuer: string; subject: string }): Promise<boolean> => {
      const { numUpdatedRows } = await queries
        .updateTable('users')
        .set({ issuer: user.issuer, subject: user.subject })
        .where('id', '=', user.id)
        .where('issuer', 'is', null)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },

    /** Creates a user as a member of an organization. Returns the user's id. */
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

    /** Makes an existing user a member of an organization. */
    addMember,
  };
}
