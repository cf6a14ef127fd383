/**
 * Both SDKs of the public service, the current one and its last 0.x, as clients of every operation that they and the
 * gateway have. They check each answer against schemas of their own.
 */
import { OpenRouter } from '@openrouter/sdk';
import { OpenRouter as OpenRouter0 } from 'openrouter-sdk-0';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SdkGateway, startSdkGateway } from './sdk-gateway.ts';

let site: SdkGateway;

beforeAll(async () => {
  site = await startSdkGateway([], { compatibility: { endpoint_status: 'integer' } });
});
afterAll(() => site.stop());

/** Members of both; members that the older one lacks are absent in it. */
type Sdk = OpenRouter;
const options = () => ({ serverURL: site.gateway.base_url, retryConfig: { strategy: 'none' as const } });
const versions = [
  { version: '1.3.19', has_all: true, of: (apiKey: string) => new OpenRouter({ apiKey, ...options() }) },
  {
    version: '0.12.16',
    has_all: false,
    of: (apiKey: string) => new OpenRouter0({ apiKey, ...options() }) as unknown as Sdk,
  },
];

/** All pages of a list; an iterator that does not end fails. */
async function pagesOf<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = [];
  for await (const page of pages) {
    read.push(page);
    expect(read.length, 'the iterator ends').toBeLessThan(200);
  }
  return read;
}

/** The result of its methods depends on `stream`, which their types do not express. */
interface Whole {
  id: string;
  openrouterMetadata?: unknown;
}
interface Chunk {
  choices: { delta: { content?: string | null } }[];
  openrouterMetadata?: unknown;
}

const hello = [{ role: 'user' as const, content: 'Hello' }];

describe.each(versions)('$version', ({ has_all, of }) => {
  /** With an ordinary key. */
  let sdk: Sdk;
  /** With a management key. */
  let admin: Sdk;
  let userId: string;

  beforeAll(async () => {
    sdk = of(site.gateway.key);
    admin = of(site.gateway.management_key);
    const [members] = await pagesOf(await admin.organization.listMembers());
    userId = members!.result.data[0]!.id;
  });

  test('chat, whole and streamed, with the routing under the name of the SDK', async () => {
    const body = { model: 'sandbox/echo', messages: hello };
    const metadata = { xOpenRouterMetadata: 'enabled', xOpenRouterExperimentalMetadata: 'enabled' } as const;
    const whole = (await sdk.chat.send({ ...metadata, chatRequest: body })) as Whole;
    expect(whole).toMatchObject({ choices: [{ message: { content: 'Hello' } }] });
    const streamed = await sdk.chat.send({ ...metadata, chatRequest: { ...body, stream: true } });
    const chunks = await pagesOf(streamed as AsyncIterable<Chunk>);
    const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
    expect(text).toBe('Hello');
    // The older one neither requests nor reads it.
    if (!has_all) return;
    expect(whole.openrouterMetadata).toMatchObject({ requested: 'sandbox/echo', strategy: 'direct' });
    expect(chunks.at(-1)?.openrouterMetadata).toMatchObject({ requested: 'sandbox/echo' });
    const plain = (await sdk.chat.send({ chatRequest: body })) as Whole;
    expect(plain.openrouterMetadata).toBeUndefined();
  });

  test('responses, whole and streamed', async () => {
    const { responses } = has_all ? sdk : sdk.beta;
    const body = { model: 'sandbox/echo', input: 'Hello' };
    expect(await responses.send({ responsesRequest: body })).toMatchObject({ status: 'completed' });
    const streamed = await responses.send({ responsesRequest: { ...body, stream: true } });
    const events = await pagesOf(streamed as AsyncIterable<object>);
    expect(events.at(-1)).toMatchObject({ type: 'response.completed' });
  });

  test('embeddings and their models', async () => {
    const requestBody = { model: 'sandbox/embed', input: ['a', 'b'] };
    const made = await sdk.embeddings.generate({ requestBody });
    expect((made as { data: unknown[] }).data).toHaveLength(2);
    const listed = await sdk.embeddings.listModels();
    const pages = has_all ? await pagesOf(listed) : [{ result: listed as unknown as { data: unknown[] } }];
    expect(pages[0]!.result.data.length).toBeGreaterThan(0);
  });

  test('lists of models: an iterator over pages ends', async () => {
    const { data } = await sdk.models.count();
    if (has_all) {
      const pages = await pagesOf(await sdk.models.list({ limit: 20 }));
      const ids = pages.flatMap(({ result }) => result.data.map(({ id }) => id));
      expect(new Set(ids).size).toBe(data.count);
      expect(ids).toHaveLength(data.count);
      const usable = await pagesOf(await sdk.models.listForUser({ bearer: site.gateway.key }, { limit: 50 }));
      expect(usable.length).toBeGreaterThan(1);
      const [page] = await pagesOf(await sdk.models.list({ q: 'sandbox echo', sort: 'pricing-low-to-high' }));
      expect(page!.result.data.map(({ id }) => id)).toContain('sandbox/echo');
      expect(await sdk.models.get({ author: 'sandbox', slug: 'echo' })).toMatchObject({ data: { id: 'sandbox/echo' } });
    } else {
      const listed = (await sdk.models.list({})) as unknown as { data: unknown[] };
      expect(listed.data).toHaveLength(data.count);
      const usable = (await sdk.models.listForUser({ bearer: site.gateway.key })) as unknown as { data: unknown[] };
      expect(usable.data.length).toBeGreaterThan(0);
    }
  });

  test('endpoints and providers', async () => {
    const { data } = await sdk.endpoints.list({ author: 'sandbox', slug: 'echo' });
    expect(data.endpoints[0]).toMatchObject({ providerName: 'Sandbox', status: 0 });
    expect((await sdk.endpoints.listZdrEndpoints()).data.length).toBeGreaterThan(0);
    expect((await sdk.providers.list()).data.length).toBeGreaterThan(0);
  });

  test('credits and activity', async () => {
    for (const one of [sdk, admin]) {
      expect((await one.credits.getCredits()).data.totalUsage).toBeGreaterThanOrEqual(0);
    }
    expect(Array.isArray((await admin.analytics.getUserActivity()).data)).toBe(true);
  });

  test('the calling key, and a generation of it that first failed at another endpoint', async () => {
    for (const one of [sdk, admin]) {
      expect((await one.apiKeys.getCurrentKeyMetadata()).data.label).not.toBe('');
    }
    // An endpoint that failed is skipped for a while, so each version has one of its own.
    const failing = `${has_all ? 'openai-chat' : 'anthropic-messages'}/fail-503`;
    const body = { models: [failing, 'sandbox/echo'], messages: hello };
    const { id } = (await sdk.chat.send({ chatRequest: body })) as Whole;
    const { data } = await sdk.generations.getGeneration({ id });
    expect(data).toMatchObject({ id, model: 'sandbox/echo' });
    expect(data.providerResponses).toHaveLength(2);
  });

  test('keys from their creation to their deletion', async () => {
    const { data, key } = await admin.apiKeys.create({
      requestBody: { name: 'sdk', limit: 5, limitReset: 'monthly', ...(has_all ? { external: { user: 'ada' } } : {}) },
    });
    expect(key).toMatch(/^sk-/);
    const { hash } = data;
    await of(key).chat.send({ chatRequest: { model: 'sandbox/echo', messages: hello } });
    expect((await admin.apiKeys.list({})).data.map((one) => one.hash)).toContain(hash);
    expect((await admin.apiKeys.get({ hash })).data).toMatchObject({ name: 'sdk', limit: 5 });
    if (has_all) expect((await admin.apiKeys.get({ hash })).data.externalUser).toBe('ada');
    expect((await of(key).apiKeys.getCurrentKeyMetadata()).data.limitRemaining).toBeLessThan(5);
    const changed = await admin.apiKeys.update({ hash, requestBody: { name: 'sdk 2', disabled: true } });
    expect(changed.data).toMatchObject({ name: 'sdk 2', disabled: true });
    expect(await admin.apiKeys.delete({ hash })).toEqual({ deleted: true });
  });

  test('guardrails, their assignments, and their end', async () => {
    const wanted = { name: 'sdk', limitUsd: 5, resetInterval: 'monthly', enforceZdr: false } as const;
    const { data } = await admin.guardrails.create({ createGuardrailRequest: wanted });
    const { id } = data;
    await pagesOf(await admin.guardrails.list({}));
    expect((await admin.guardrails.get({ id })).data).toMatchObject({ name: 'sdk', limitUsd: 5 });
    await admin.guardrails.update({
      id,
      updateGuardrailRequest: { description: 'd', contentFilterBuiltins: [{ slug: 'email', action: 'redact' }] },
    });
    const made = await admin.apiKeys.create({ requestBody: { name: 'guarded' } });
    const keys = { keyHashes: [made.data.hash] };
    const members = { memberUserIds: [userId] };
    expect(await admin.guardrails.bulkAssignKeys({ id, bulkAssignKeysRequest: keys })).toEqual({ assignedCount: 1 });
    await admin.guardrails.bulkAssignMembers({ id, bulkAssignMembersRequest: members });
    for (const list of [
      await pagesOf(await admin.guardrails.listGuardrailKeyAssignments({ id })),
      await pagesOf(await admin.guardrails.listGuardrailMemberAssignments({ id })),
      await pagesOf(await admin.guardrails.listKeyAssignments({})),
      await pagesOf(await admin.guardrails.listMemberAssignments({})),
    ]) {
      expect(list[0]!.result.totalCount).toBe(1);
    }
    const { data: current } = await of(made.key).apiKeys.getCurrentKeyMetadata();
    expect(current.limit).toBeNull();
    await admin.guardrails.bulkUnassignKeys({ id, bulkUnassignKeysRequest: keys });
    await admin.guardrails.bulkUnassignMembers({ id, bulkUnassignMembersRequest: members });
    expect(await admin.guardrails.delete({ id })).toEqual({ deleted: true });
    await admin.apiKeys.delete({ hash: made.data.hash });
  });

  test('an application gets a key by a code', async () => {
    const requestBody = { callbackUrl: 'https://app.example/callback' };
    const { data } = await sdk.oAuth.createAuthCode({ requestBody });
    const made = await sdk.oAuth.exchangeAuthCodeForAPIKey({ requestBody: { code: data.id } });
    expect(made.key).toMatch(/^sk-/);
  });

  test.runIf(has_all)('workspaces, their budgets and members', async () => {
    const { workspaces } = admin;
    const { data } = await workspaces.create({ createWorkspaceRequest: { name: 'SDK', slug: 'sdk' } });
    const { id } = data;
    await pagesOf(await workspaces.list());
    expect((await workspaces.get({ id: 'sdk' })).data.id).toBe(id);
    await workspaces.update({ id, updateWorkspaceRequest: { description: 'd', disabledServerTools: [] } });
    for (const [interval, limitUsd] of [
      ['monthly', 10],
      ['lifetime', 100],
    ] as const) {
      await workspaces.setBudget({ workspaceRef: id, interval, upsertWorkspaceBudgetRequest: { limitUsd } });
      expect((await workspaces.getBudget({ workspaceRef: id, interval })).data.limitUsd).toBe(limitUsd);
    }
    expect((await workspaces.listBudgets({ workspaceRef: id })).data).toHaveLength(2);
    await workspaces.deleteBudget({ workspaceRef: id, interval: 'monthly' });
    const userIds = [userId];
    await workspaces.bulkAddMembers({ id, bulkAddWorkspaceMembersRequest: { userIds } });
    expect((await pagesOf(await workspaces.listMembers({ id })))[0]!.result.totalCount).toBe(1);
    await workspaces.bulkRemoveMembers({ id, bulkRemoveWorkspaceMembersRequest: { userIds } });
    expect(await workspaces.delete({ id })).toEqual({ deleted: true });
  });

  test.runIf(has_all)('credentials of own accounts', async () => {
    const wanted = { provider: 'openai', key: 'sk-own-0123456789', isByokOnly: true, declaredZdr: true } as const;
    const { data } = await admin.byok.create({ createBYOKKeyRequest: wanted });
    expect(data).toMatchObject({ isByokOnly: true, declaredZdr: true, isRequired: true });
    const { id } = data;
    await pagesOf(await admin.byok.list({}));
    const changed = await admin.byok.update({ id, updateBYOKKeyRequest: { name: 'mine', isRequired: false } });
    expect(changed.data).toMatchObject({ name: 'mine', isRequired: false });
    expect((await admin.byok.get({ id })).data.name).toBe('mine');
    expect(await admin.byok.delete({ id })).toEqual({ deleted: true });
  });
});
