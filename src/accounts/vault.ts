import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

/** Encrypts secrets for the store, so that the store alone does not reveal them. */
export interface Vault {
  /** Encrypts a text for one place: it does not open for another. */
  seal(text: string, place: string): string;
  /** Decrypts a text. Throws if it was sealed with another secret or for another place, or was changed; the message says which. */
  open(sealed: string, place: string): string;
}

const FORMAT = 'v1';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Creates the vault of a gateway's secret: AES-256-GCM (NIST SP 800-38D) under a key derived by HKDF (RFC 5869), a fresh nonce each time. */
export function createVault(secret: string): Vault {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'model-gateway credentials', 32));
  // Identifies the secret that sealed a text, without revealing it.
  const keyId = createHash('sha256').update('key id').update(key).digest('hex').slice(0, 8);
  return {
    seal(text, place) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(place));
      const encrypted = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      return `${FORMAT}.${keyId}.${encrypted.toString('base64url')}`;
    },
    open(sealed, place) {
      const [format, sealedBy, body = ''] = sealed.split('.');
      if (format !== FORMAT) throw new Error('A stored credential has a format that this version cannot read');
      if (sealedBy !== keyId) throw new Error('A stored credential was encrypted with another GATEWAY_SECRET');
      const bytes = Buffer.from(body, 'base64url');
      try {
        const nonce = bytes.subarray(0, NONCE_BYTES);
        const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
        decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(-TAG_BYTES));
        const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8');
        return text + decipher.final('utf8');
      } catch (cause) {
        throw new Error('A stored credential was changed, or belongs to another record', { cause });
      }
    },
  };
}
