import { createHash, randomBytes } from 'node:crypto';
import { openDatabase } from '../../src/storage/database.ts';
import { verifyLedger } from '../../src/storage/verify-ledger.ts';
import { startGateway, type TestGateway } from '../harness.ts';

export interface Made {
  secret: string;
  hash: string;
}

interface Answer {
  status: number;
  body: { data?: Record<string, unknown>; key?: string; error?: { code: number; message: string } };
}

/** Two gateways on one store, and what an attacker with one key can try there. `cleanups` end them. */
export async function keyFamily(
  freshUrl: () => Promise<string | undefined>,
  cleanups: (() => Promise<void>)[],
  yaml?: string,
) {
  const url = await freshUrl();
  const environment: Record<string, string> = url === undefined ? {} : { DATABASE_URL: url };
  const options = { environment, ...(yaml === undefined ? {} : { yaml }) };
  const one = await startGateway(options);
  cleanups.push(() => one.stop());
  const other = await startGateway({ ...options, ...(url === undefined ? { data_dir: one.data_dir } : {}) });
  cleanups.push(() => other.stop());

  const ask = async (gateway: TestGateway, secret: string, method: string, path: string, body?: unknown) => {
    const answer = await gateway.call(method, path, body, { authorization: `Bearer ${secret}` });
    return { status: answer.status, body: await answer.json() } as Answer;
  };
  const manage = async (method: string, path: string, body?: unknown) => {
    const { status, body: answer } = await ask(one, one.management_key, method, path, body);
    if (status > 299) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`);
    return answer.data ?? (answer as Record<string, unknown>);
  };
  /** An ordinary key that an administrator makes. */
  const makeKey = async (body: object = {}): Promise<Made> => {
    const { body: answer } = await ask(one, one.management_key, 'POST', '/keys', { name: 'parent', ...body });
    return { secret: answer.key ?? '', hash: String(answer.data?.['hash']) };
  };
  const code = (secret: string, body: object = {}, gateway = one) =>
    ask(gateway, secret, 'POST', '/auth/keys/code', { callback_url: 'https://app.example/cb', ...body });
  const exchange = async (of: Answer, gateway = one) => {
    const answer = await gateway.call(
      'POST',
      '/auth/keys',
      { code: String(of.body.data?.['id']) },
      { authorization: '' },
    );
    const body = (await answer.json()) as { key?: string };
    const secret = body.key ?? '';
    const hash = createHash('sha256').update(secret).digest('hex');
    return { status: answer.status, body, secret, hash };
  };
  /** A key that is made with another one, without an administrator. */
  const makeChild = async (secret: string, body: object = {}): Promise<Made> => {
    const made = await exchange(await code(secret, { key_label: randomBytes(4).toString('hex'), ...body }));
    if (made.status !== 200) throw new Error(`no child: ${made.status} ${JSON.stringify(made.body)}`);
    return { secret: made.secret, hash: made.hash };
  };
  const chat = (gateway: TestGateway, secret: string) =>
    ask(gateway, secret, 'POST', '/chat/completions', {
      model: 'sandbox/echo',
      max_tokens: 20,
      messages: [{ role: 'user', content: 'hello there' }],
    });
  /** The answers of both nodes to a key. */
  const both = async (secret: string) =>
    Promise.all([one, other].map(async (gateway) => (await chat(gateway, secret)).status));
  const keyOf = (hash: string) => manage('GET', `/keys/${hash}`);
  const verified = async () => {
    const database = await openDatabase({ data_dir: one.data_dir, database_url: url });
    try {
      return (await verifyLedger(database.queries)).differences;
    } finally {
      await database.close();
    }
  };
  return { one, other, url, ask, manage, makeKey, makeChild, code, exchange, chat, both, keyOf, verified };
}
