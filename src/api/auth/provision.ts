import { GatewayError } from '../../errors.ts';
import type { Identity } from '../../http/issuer.ts';
import { limits } from '../../limits.ts';
import { isStorable, lowerAscii } from '../../schemas/text.ts';
import { isUniqueViolation } from '../../storage/database.ts';
import { identityStore } from '../../storage/identities.ts';
import { organizationStore } from '../../storage/organizations.ts';
import type { Change, Work } from '../change.ts';

/** Which people may sign in at an issuer. */
export interface ProvisionRules {
  organization_id: string;
  /** The role of new users; `none`: only existing users may sign in. */
  provision: 'admin' | 'member' | 'none';
  /** In lower case; undefined: every domain. */
  allowed_email_domains: readonly string[] | undefined;
}

const refuse = (why: string) => new GatewayError(403, why);

/** A name from outside, cut to what the store accepts. */
function short(text: string | undefined): string | null {
  if (text === undefined || !isStorable(text)) return null;
  return [...text].slice(0, limits.user_name_chars_max).join('');
}

/** The email address, if the issuer has verified it. */
function vouchedEmail({ email, email_verified }: Identity): string | undefined {
  if (!email_verified || email === undefined) return undefined;
  return email.length <= limits.email_chars_max && isStorable(email) ? email : undefined;
}

function checkDomain(email: string | undefined, allowed: readonly string[] | undefined): void {
  if (allowed === undefined) return;
  const domain = email === undefined ? undefined : lowerAscii(email.slice(email.lastIndexOf('@') + 1));
  if (domain === undefined || !email?.includes('@') || !allowed.includes(domain)) {
    throw refuse('Your e-mail address may not sign in here, or is not confirmed.');
  }
}

/**
 * The user of an identity: by issuer and subject, else by a verified email address that no other identity has claimed, else a new one if the
 * rules allow it. Throws an error with a sentence for the person if there is none.
 */
export async function userOf(
  change: Change,
  identity: Identity,
  rules: ProvisionRules,
  requestId: string,
): Promise<string> {
  const { issuer, subject } = identity;
  // All people without a subject would be the same user.
  const isKeepable = subject !== '' && subject.length <= limits.user_name_chars_max * 2 && isStorable(subject);
  if (!isStorable(issuer) || !isKeepable) {
    throw refuse('The sign-in service sent an identifier that cannot be stored.');
  }
  checkDomain(vouchedEmail(identity), rules.allowed_email_domains);
  const { organization_id } = rules;
  const actor = { organization_id, actor: 'page', key_hash: null, user_id: null, request_id: requestId } as const;
  const find = () => change(actor, (work) => findOrCreate(work, identity, rules));
  try {
    return await find();
  } catch (error) {
    // The same user was made concurrently, and exists now.
    if (!isUniqueViolation(error)) throw error;
    return find();
  }
}

async function findOrCreate({ tx, at, audit }: Work, identity: Identity, rules: ProvisionRules): Promise<string> {
  const { organization_id, provision } = rules;
  const { issuer, subject } = identity;
  const users = identityStore(tx);
  const email = vouchedEmail(identity);
  const known = await users.findBySubject({ issuer, subject });
  // One statement, so that a user made concurrently is either seen or not, never counted as a second person.
  const withAddress = known || email === undefined ? [] : await users.findAllByEmail(email);
  const user = known ?? (withAddress.length === 1 ? withAddress[0] : undefined);
  if (user) {
    if (!(await organizationStore(tx).findMember({ organization_id, user_id: user.id }))) {
      throw refuse('You are no longer a member of this organization; ask one of its administrators.');
    }
    // It may have been linked concurrently.
    if (user.issuer === issuer && user.subject === subject) return user.id;
    if (!(await users.link({ id: user.id, issuer, subject }))) {
      throw refuse(
        'Your e-mail address belongs to a member with another identity at the sign-in service; ask an administrator.',
      );
    }
    await audit({
      action: 'update',
      resource_type: 'user',
      resource_id: user.id,
      before: { issuer: null, subject: null },
      after: { issuer, subject },
    });
    return user.id;
  }
  if (withAddress.length > 0) {
    throw refuse(
      'Several people here have your e-mail address; ask an administrator of this gateway which of them you are.',
    );
  }
  if (provision === 'none') throw refuse('You are not known here; ask an administrator of this gateway to add you.');
  const made = {
    name: short(identity.name ?? email ?? subject) ?? 'User',
    email: email ?? null,
    first_name: short(identity.given_name),
    last_name: short(identity.family_name),
    issuer,
    subject,
  };
  const id = await users.insertMember(made, { organization_id, role: provision, at });
  await audit({
    action: 'create',
    resource_type: 'user',
    resource_id: id,
    before: null,
    after: { ...made, role: provision },
  });
  return id;
}
