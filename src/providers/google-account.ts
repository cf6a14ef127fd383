/** A token as a dialect's `authorize` gets it, in place of the credential that it was got for. */
export function bearer(token: string): string {
  return `Bearer ${token}`;
}

/** Whether a credential is such a token: no key of a provider has a space in it. */
export function isBearer(credential: string): boolean {
  return credential.startsWith('Bearer ');
}
