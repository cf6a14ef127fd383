import { GatewayError } from '../../errors.ts';
import type { Identity } from '../../http/issuer.ts';
import { limits } from '../../limits.ts';
import { isStorable, lowerAscii } from '../../schemas/text.ts';
import { isUniqueViolation } from '../../storage/database.ts';
import { identityStore } from '../../storage/identities.ts';
import { organizationStore } from '../../storage/organizations.ts';
import type { Change, Work } from '../change.ts';

/** Whom an issuer may sign in. */
export interface ProvisionRules {
  organization_id: string;
  /** The role of people who come for the first time; `none`: they must be known already. */
  provision: 'admin' | 'member' | 'none';
  /** Lower case; undefined: every domain. */
  allowed_email_domains: readonly string[] | undefined;
}

const refuse = (why: string) => new GatewayError(403, why);

/** What the store takes of a name that somebody else has written. */
function short(text: string | undefined): string | null {
  if (text === undefined || !isStorable(text)) return null;
  return [...text].slice(0, limits.user_name_chars_max).join('');
}

/** Only an address that the issuer vouches for says anything. */
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
 * Finds the user of an identity: by issuer and subject, else by a confirmed e-mail address that no other identity has
 * claimed, else makes one where the rules let newcomers in. Throws a sentence for the person where there is none.
 */
export async function userOf(
  change: Change,
  identity: Identity,
  rules: ProvisionRules,
  requestId: string,
): Promise<string> {
  const { issuer, subject } = identity;
  // Everybody without a name would be the same person.
  const isKeepable = subject !== '' && subject.length <= limits.user_name_chars_max * 2 && isStorable(subject);
  if (!isStorable(issuer) || !isKeepable) {
    throw refuse('The sign-in service sent an identifier that cannot be stored.');
  }
  checkDomain(vouchedEmail(identity), rules.allowed_email_domains);
  const { organization_id } = rules;
  const actor = { organization_id, actor: 'page', key_hash: null, user_id: null, request_id: requestId } as const;
  const find = () => change(actor, (work) => findOrMake(work, identity, rules));
  try {
    return await find();
  } catch (error) {
    // Somebody made the same user meanwhile; now it is there.
    if (!isUniqueViolation(error)) throw error;
    return find();
  }
}

async function findOrMake({ tx, at, audit }: Work, identity: Identity, rules: ProvisionRules): Promise<string> {
  const { organization_id, provision } = rules;
  const { issuer, subject } = identity;
  const users = identityStore(tx);
  const email = vouchedEmail(identity);
  const known = await users.findBySubject({ issuer, subject });
  const found = known ?? (email === undefined ? undefined : await users.findByEmail(email));
  if (found) {
    if (!(await organizationStore(tx).findMember({ organization_id, user_id: found.id }))) {
      throw refuse('You are no longer a member of this organization; ask one of its administrators.');
    }
    // Between the two questions somebody may have made it.
    if (found.issuer === issuer && found.subject === subject) return found.id;
    if (!(await users.link({ id: found.id, issuer, subject }))) {
      throw refuse(
        'Your e-mail address belongs to a member with another identity at the sign-in service; ask an administrator.',
      );
    }
    await audit({
      action: 'update',
      resource_type: 'user',
      resource_id: found.id,
      before: { issuer: null, subject: null },
      after: { issuer, subject },
    });
    return found.id;
  }
  if (email !== undefined && (await users.hasEmail(email))) {
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
