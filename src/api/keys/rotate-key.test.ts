import { expect, test } from 'vitest';
import { authPagesServer } from '../../../test/http/auth-pages-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { hashSecret } from '../../accounts/key.ts';
import { limits } from '../../limits.ts';
import { auditStore } from '../../storage/audit.ts';
import { keyStore, type NewKey } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { deleteKey } from './delete-key.ts';
import { deletePreviousSecret } from './delete-previous-secret.ts';
import { getKey } from './get-key.ts';
import { probeKeyHash } from './keep-probe-key.ts';
import { listKeys } from './list-keys.ts';
import { rotateKey } from './rotate-key.ts';
import { updateKey } from './update-key.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const after = (seconds: number) => new Date(Date.parse(NOW) + seconds * 1_000).toISOString();
type Data = Record<string, unknown>;

describeStores('POST /keys/{hash}/rotate', ({ open }) => {
  async function setUp() {
    const database = await open();
    const made = await authPagesServer(database, NOW);
    const shared = {
      change: made.change,
      keys: keyStore(database.queries),
      organizations: organizationStore(database.queries),
      recorder: { flush: async () => {} },
      now: made.clock.nowMs,
    };
    for (const serve of [rotateKey, deletePreviousSecret, getKey, listKeys, updateKey, deleteKey]) {
      serve(made.server, shared);
    }
    const addKey = async (over: Partial<NewKey> = {}) => {
      const secret = `sk-gw-v1-first ${Math.random()}`;
      const key = await made.addKey({ creator_user_id: made.home.owner_user_id, hash: hashSecret(secret), ...over });
      return { secret, hash: key.hash };
    };
    const rotate = async (hash: string, body: unknown = {}, credential?: string, headers?: Record<string, string>) => {
      const answer = await made.call('POST', `/keys/${hash}/rotate`, body, credential, headers);
      const data = answer.body['data'] as unknown as Data | undefined;
      return { ...answer, data, secret: answer.body['key'] as unknown as string };
    };
    /** The result of the check of a secret: the hash of the key, or the reason of the refusal. */
    const check = async (secret: string) => {
      try {
        return (await made.authenticate(secret)).key_hash;
      } catch (error) {
        return (error as Error).message;
      }
    };
    const recordOf = async (hash: string) => (await made.call('GET', `/keys/${hash}`)).body['data'] as unknown as Data;
    const events = async () => {
      const filter = { organization_id: made.home.organization_id };
      return (await auditStore(database.queries).listBy(filter, { offset: 0, limit: 20 })).data;
    };
    return { ...made, database, addKey, rotate, check, recordOf, events };
  }
  const REPLACED = 'This secret of the API key was replaced and is no longer valid; use the new secret';

  test('200: a new secret of the same key, whose other fields stay', async () => {
    const { addKey, rotate, check, recordOf } = await setUp();
    const { secret, hash } = await addKey({ limit_nano: 5_000_000_000, limit_reset: 'daily', name: 'ci' });
    const before = await recordOf(hash);
    const rotated = await rotate(hash, {});
    expect(rotated.status).toBe(200);
    expect(rotated.secret).toMatch(/^sk-gw-v1-[0-9a-f]{64}$/);
    expect(rotated.data).toEqual({
      ...before,
      label: `${rotated.secret.slice(0, 12)}...${rotated.secret.slice(-3)}`,
      updated_at: NOW,
      rotated_at: NOW,
      previous_label: before['label'],
      previous_secret_expires_at: after(limits.key_grace_default_seconds),
    });
    expect(await recordOf(hash)).toEqual(rotated.data);
    expect([await check(secret), await check(rotated.secret)]).toEqual([hash, hash]);
  });

  test('the previous secret ends by the clock of the store, with a message, and the record no longer shows it', async () => {
    const { addKey, rotate, check, recordOf, pass } = await setUp();
    const { secret, hash } = await addKey();
    const rotated = await rotate(hash, { grace_seconds: 60 });
    pass(59_999);
    expect(await check(secret)).toBe(hash);
    pass(1);
    expect([await check(secret), await check(rotated.secret)]).toEqual([REPLACED, hash]);
    expect(await recordOf(hash)).toMatchObject({
      previous_label: null,
      previous_secret_expires_at: null,
      rotated_at: NOW,
    });
  });

  test('the record shows the last use of the older secret since the rotation, as one statement for many requests', async () => {
    const { addKey, rotate, check, recordOf, pass, previousSecrets } = await setUp();
    const { secret, hash } = await addKey();
    await check(secret);
    const rotated = await rotate(hash, { grace_seconds: 60 });
    pass(1_000);
    await check(rotated.secret);
    await previousSecrets.write();
    const before = await recordOf(hash);
    expect(before['previous_secret_last_used_at']).toBeNull();
    for (let request = 0; request < 3; request += 1) {
      pass(1_000);
      await check(secret);
    }
    expect((await recordOf(hash))['previous_secret_last_used_at']).toBeNull();
    await previousSecrets.write();
    expect(await recordOf(hash)).toEqual({ ...before, previous_secret_last_used_at: after(4) });
    const kept = await rotate(hash, { grace_seconds: 60, keep: 'previous' });
    expect(kept.data).toMatchObject({ previous_secret_last_used_at: after(4) });
    await check(secret);
    const next = await rotate(hash, { grace_seconds: 60, keep: 'current' });
    expect(next.data).toMatchObject({ previous_secret_last_used_at: null });
    // The use of a secret that is no longer the previous one is not that of the one after it.
    await previousSecrets.write();
    expect((await recordOf(hash))['previous_secret_last_used_at']).toBeNull();
    pass(60_000);
    await check(kept.secret);
    await previousSecrets.write();
    expect(await recordOf(hash)).toMatchObject({ previous_secret_last_used_at: null, updated_at: after(4) });
  });

  test('without a grace the previous secret ends immediately, and is unknown after a second rotation', async () => {
    const { addKey, rotate, check, recordOf } = await setUp();
    const { secret, hash } = await addKey();
    const second = await rotate(hash, { grace_seconds: 0 });
    expect([await check(secret), await check(second.secret)]).toEqual([REPLACED, hash]);
    expect(await recordOf(hash)).toMatchObject({ previous_label: null, previous_secret_expires_at: null });
    await rotate(hash, { grace_seconds: 0 });
    expect([await check(secret), await check(second.secret)]).toEqual(['Invalid API key', REPLACED]);
  });

  test('409: during a grace without a choice, and the refused rotation changes nothing', async () => {
    const { addKey, rotate, check, recordOf, events } = await setUp();
    const { secret, hash } = await addKey();
    const second = await rotate(hash);
    const before = [await recordOf(hash), (await events()).length];
    const refused = await rotate(hash);
    expect(refused.status).toBe(409);
    expect(refused.secret).toBeUndefined();
    expect([await recordOf(hash), (await events()).length]).toEqual(before);
    const third = await rotate(hash, { keep: 'previous' });
    const all = [secret, second.secret, third.secret];
    expect(await Promise.all(all.map(check))).toEqual([hash, 'Invalid API key', hash]);
    const fourth = await rotate(hash, { keep: 'current' });
    expect(await Promise.all([...all, fourth.secret].map(check))).toEqual([
      'Invalid API key',
      'Invalid API key',
      hash,
      hash,
    ]);
  });

  test('concurrent rotations leave one current secret and at most one previous one', async () => {
    const { addKey, rotate, check } = await setUp();
    for (const [body, most] of [
      [{}, 2],
      [{ grace_seconds: 0 }, 1],
    ] as const) {
      const { secret, hash } = await addKey();
      const answers = await Promise.all(Array.from({ length: 6 }, () => rotate(hash, body)));
      const secrets = [secret, ...answers.flatMap((answer) => answer.secret ?? [])];
      const accepted = (await Promise.all(secrets.map(check))).filter((keyHash) => keyHash === hash);
      expect(accepted).toHaveLength(most);
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(most === 2 ? 1 : 6);
    }
  });

  test('DELETE of the previous secret ends it immediately, and a second one changes nothing', async () => {
    const { addKey, rotate, check, call, events } = await setUp();
    const { secret, hash } = await addKey();
    const rotated = await rotate(hash);
    const end = () => call('DELETE', `/keys/${hash}/previous-secret`);
    const ended = await end();
    expect(ended).toMatchObject({ status: 200, body: { data: { hash, previous_label: null } } });
    expect([await check(secret), await check(rotated.secret)]).toEqual([REPLACED, hash]);
    const count = (await events()).length;
    expect(await end()).toMatchObject({ status: 200, headers: { etag: ended.headers.etag } });
    expect(await events()).toHaveLength(count);
    expect((await call('DELETE', `/keys/${'0'.repeat(64)}/previous-secret`)).status).toBe(404);
  });

  test('disabling the key disables both secrets until it is enabled, and deleting it ends them', async () => {
    const { addKey, rotate, check, call } = await setUp();
    const { secret, hash } = await addKey();
    const rotated = await rotate(hash);
    const both = async () => [await check(secret), await check(rotated.secret)];
    await call('PATCH', `/keys/${hash}`, { disabled: true });
    expect(await both()).toEqual(Array(2).fill('This API key is disabled'));
    await call('PATCH', `/keys/${hash}`, { disabled: false });
    expect(await both()).toEqual([hash, hash]);
    expect((await call('DELETE', `/keys/${hash}`)).status).toBe(200);
    expect(await both()).toEqual(Array(2).fill('Invalid API key'));
    expect((await rotate(hash)).status).toBe(404);
  });

  test('a disabled key is rotated and stays disabled, and an expired one is refused', async () => {
    const { addKey, rotate, check, pass } = await setUp();
    const disabled = await rotate((await addKey({ disabled: true })).hash);
    expect(disabled.data).toMatchObject({ disabled: true, rotated_at: NOW });
    expect(await check(disabled.secret)).toBe('This API key is disabled');
    const { secret, hash } = await addKey({ expires_at: after(60) });
    const rotated = await rotate(hash);
    expect(rotated.data).toMatchObject({ expires_at: after(60), previous_secret_expires_at: after(60) });
    pass(60_000);
    expect(await check(rotated.secret)).toBe('This API key has expired');
    expect(await check(secret)).toBe(REPLACED);
    expect(await rotate(hash)).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringContaining('make a new key') } },
    });
  });

  test('409: the key of health probes, which accepts no calls, gets no secret', async () => {
    const { addKey, rotate, home, recordOf } = await setUp();
    const { hash } = await addKey({ hash: probeKeyHash(home.organization_id), label: 'no secret' });
    expect((await rotate(hash)).status).toBe(409);
    expect(await recordOf(hash)).toMatchObject({ label: 'no secret', rotated_at: null });
  });

  test('the hash of the key stays its address, and the SHA-256 of a new secret does not become one', async () => {
    const { addKey, rotate, call } = await setUp();
    const { hash } = await addKey();
    const rotated = await rotate(hash);
    expect((await call('GET', `/keys/${hashSecret(rotated.secret)}`)).status).toBe(404);
    expect((await rotate(hashSecret(rotated.secret))).status).toBe(404);
    expect(rotated.data).toMatchObject({ hash });
  });

  test('404: foreign, management and unknown keys; 401 and 403: callers that may not change keys, also the key itself', async () => {
    const { addKey, rotate, check } = await setUp();
    const { secret, hash } = await addKey();
    const management = await addKey({ is_management: true });
    const statuses = [
      await rotate(hash, {}, 'foreign'),
      await rotate(management.hash),
      await rotate('0'.repeat(64)),
      await rotate('\u0000'),
      await rotate(hash, {}, 'ordinary'),
      await rotate(hash, {}, ''),
    ].map(({ status }) => status);
    expect(statuses).toEqual([404, 404, 404, 404, 403, 401]);
    expect([await check(secret), await check(management.secret)]).toEqual([hash, management.hash]);
  });

  test('a member rotates keys that it created, and may only end previous secrets of assigned keys', async () => {
    const { addKey, rotate, call, sessionOf, principals, database } = await setUp();
    const member = await sessionOf('member');
    principals['member'] = member;
    const own = await addKey({ creator_user_id: member.user_id, made_by: 'session' });
    const granted = await addKey({ creator_user_id: member.user_id });
    const other = await addKey({ creator_user_id: null, made_by: 'session' });
    const rotated = [own, granted, other].map(({ hash }) => rotate(hash, {}, 'member'));
    expect((await Promise.all(rotated)).map(({ status }) => status)).toEqual([200, 403, 404]);
    await rotate(granted.hash);
    await rotate(other.hash);
    const ended = [granted, other].map(({ hash }) =>
      call('DELETE', `/keys/${hash}/previous-secret`, undefined, 'member'),
    );
    expect((await Promise.all(ended)).map(({ status }) => status)).toEqual([200, 404]);
    const stored = await keyStore(database.queries).findByHash(other.hash);
    expect(stored?.previous_secret_expires_at).not.toBeNull();
  });

  test('400: invalid graces and choices, and the key does not change', async () => {
    const { addKey, rotate, recordOf } = await setUp();
    const { hash } = await addKey();
    for (const [body, message] of [
      [{ grace_seconds: -1 }, /^grace_seconds must be at least 0/],
      [{ grace_seconds: limits.key_grace_seconds_max + 1 }, /^grace_seconds must be at most 2592000/],
      [{ grace_seconds: 0.5 }, /^grace_seconds /],
      [{ grace_seconds: '60' }, /^grace_seconds /],
      [{ grace_seconds: null }, /^grace_seconds /],
      [{ grace_seconds: [60] }, /^grace_seconds /],
      [{ keep: 'both' }, /^keep /],
      [{ keep: null }, /^keep /],
      [{ grace_seconds: 0, keep: 'current' }, /^keep must be left out/],
      [{ grace: 60 }, /grace/],
      [[], /./],
      ['null', /./],
      ['', /./],
    ] as const) {
      const answer = await rotate(hash, body);
      expect([body, answer]).toMatchObject([
        body,
        { status: 400, body: { error: { message: expect.stringMatching(message) } } },
      ]);
    }
    expect(await recordOf(hash)).toMatchObject({ rotated_at: null });
  });

  test('If-Match: a rotation of a version succeeds only if the key has not changed since', async () => {
    const { addKey, rotate, call } = await setUp();
    const { hash } = await addKey();
    const { headers } = await call('GET', `/keys/${hash}`);
    const match = { 'if-match': String(headers['etag']) };
    const statuses = [
      await rotate(hash, {}, undefined, match),
      await rotate(hash, { keep: 'current' }, undefined, match),
    ];
    expect(statuses.map(({ status }) => status)).toEqual([200, 409]);
  });

  test('the audit has labels and times, without a secret or its SHA-256', async () => {
    const { addKey, rotate, call, events, recordOf } = await setUp();
    const { hash } = await addKey();
    const { label } = await recordOf(hash);
    const { secret, data } = await rotate(hash, { grace_seconds: 60 });
    await call('DELETE', `/keys/${hash}/previous-secret`);
    const all = await events();
    const shown = { label: data?.['label'], previous_label: label, rotated_at: NOW };
    expect(all).toMatchObject([
      {
        action: 'update',
        before: { previous_secret_expires_at: after(60) },
        after: { previous_secret_expires_at: null },
      },
      {
        action: 'rotate',
        resource_type: 'api_key',
        resource_id: hash,
        before: { label, rotated_at: null, previous_label: null },
        after: { ...shown, previous_secret_expires_at: after(60) },
      },
    ]);
    expect(JSON.stringify(all)).not.toContain(secret);
    expect(JSON.stringify(all)).not.toContain(hashSecret(secret));
  });
});
