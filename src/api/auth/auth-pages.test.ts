import { afterEach, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { startOidcIssuer } from '../../../test/http/oidc-issuer.ts';

const SITE = 'http://gateway.example';
// RFC 7636, appendix B.
const codeVerifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
const PARAMETERS = new URLSearchParams({
  callback_url: 'https://app.example/cb',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
  state: 'the-state',
});

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A browser of the gateway at `gateway.example`. */
function browserOf(gateway: TestGateway) {
  const cookies = new Map<string, string>();
  return async (path: string, form?: Record<string, string>) => {
    const answer = await fetch(new URL(path, `${gateway.url}/`), {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '), origin: SITE },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const body = await answer.text();
    const formToken = /name="form_token" value="([^"]+)"/.exec(body)?.[1] ?? '';
    // A page's own addresses are relative to it.
    const location = new URL(answer.headers.get('location') ?? '', answer.url);
    const isOwn = location.origin === new URL(gateway.url).origin;
    return {
      status: answer.status,
      location: isOwn ? location.pathname + location.search : location.href,
      body,
      form_token: formToken,
      cookies,
    };
  };
}

test('a sign-in leads to a usable key, with no code, secret or issuer address in the log', async () => {
  const issuer = await startOidcIssuer({ id: 'gateway', secret: 'client-secret-of-the-gateway' });
  closing.push(issuer.stop);
  issuer.be({ sub: 'ada-1', name: 'Ada', email: 'ada@example.com', email_verified: true });
  const gateway = await startGateway({
    yaml: `auth:
  public_url: ${SITE}
  oidc: { issuer: "${issuer.url}", client_id: gateway, client_secret: "\${OIDC_SECRET}", provision: member }
`,
    environment: { OIDC_SECRET: 'client-secret-of-the-gateway' },
  });
  closing.push(gateway.stop);
  const visit = browserOf(gateway);

  const sent = await visit(`/auth?${PARAMETERS}`);
  const page = await visit(sent.location);
  const [, link = ''] = /href="([^"]*sign-in\/issuer\?[^"]+)"/.exec(page.body) ?? [];
  const back = issuer.visit((await visit(link.replaceAll('&amp;', '&'))).location);
  const returned = await visit(back.slice(SITE.length));
  expect(returned).toMatchObject({ status: 303, location: `/auth?${PARAMETERS}` });
  const { form_token } = await visit(returned.location);
  const approved = await visit('/auth', { ...Object.fromEntries(PARAMETERS), form_token, decision: 'approve' });
  const code = new URL(approved.location).searchParams.get('code') ?? '';
  expect(code).toMatch(/^[\w-]{43}$/);

  const exchange = (body: object) =>
    fetch(`${gateway.base_url}/auth/keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  expect((await exchange({ code, code_verifier: 'wrong' })).status).toBe(403);
  const exchanged = await exchange({ code, code_verifier: codeVerifier, code_challenge_method: 'S256' });
  expect(exchanged.status).toBe(200);
  const { key } = (await exchanged.json()) as { key: string };
  const models = await fetch(`${gateway.base_url}/models`, { headers: { authorization: `Bearer ${key}` } });
  expect(models.status).toBe(200);

  issuer.be({ sub: 'ada-1' }, { broken: { path: '/token', status: 500 } });
  const again = browserOf(gateway);
  const failing = issuer.visit((await again('/sign-in/issuer')).location);
  expect((await again(failing.slice(SITE.length))).status).toBe(502);
  expect((await visit('/sign-in', { management_key: gateway.management_key })).status).toBe(303);
  await gateway.gateway.stop();

  const log = gateway.log_lines.join('');
  expect(log).toContain('"path":"/sign-in/issuer/callback"');
  expect(log).toContain('request failed');
  const secrets = [
    code,
    codeVerifier,
    key,
    form_token,
    gateway.management_key,
    'client-secret-of-the-gateway',
    'the-state',
    'code=',
    'state=',
    new URL(back).searchParams.get('code') ?? '',
    new URL(failing).searchParams.get('code') ?? '',
    ...sent.cookies.values(),
  ];
  for (const secret of secrets.filter((text) => text !== '')) expect(log).not.toContain(secret);
});
