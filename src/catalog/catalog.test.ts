import { describe, expect, test } from 'vitest';
import type { Provider } from '../providers/provider.ts';
import { providerRow } from '../providers/table.ts';
import type { BundledCatalog, BundledEndpoint, BundledModel } from './bundled.ts';
import { buildCatalog, type CatalogSources, type DeclaredModel } from './catalog.ts';

function provider(slug: string, over: Partial<Provider> = {}): Provider {
  const row = providerRow.get(slug);
  return {
    slug,
    name: row?.name ?? slug,
    dialect: row?.dialect ?? 'openai-chat',
    base_url: 'http://127.0.0.1:9/v1',
    credential: 'k',
    quirks: row?.quirks ?? {},
    data_policy: { training: 'unknown', retention_days: 'unknown' },
    abort_stops_billing: true,
    headers: {},
    ...over,
  };
}

function endpoint(slug: string, over: Partial<BundledEndpoint> = {}): BundledEndpoint {
  return {
    provider: slug,
    model: 'upstream-name',
    can: ['tools', 'structured', 'sampling'],
    price: { prompt: 1_000_000, completion: 2_000_000 },
    ...over,
  };
}

function bundledModel(id: string, endpoints: BundledEndpoint[], over: Partial<BundledModel> = {}): BundledModel {
  return {
    id,
    canonical_slug: `${id}-20250102`,
    name: id,
    created: 1_700_000_000,
    context: 1_000,
    input: ['text'],
    output: ['text'],
    tokenizer: 'Other',
    endpoints,
    ...over,
  };
}

function build(
  bundled: BundledModel[],
  providers: Provider[],
  models: DeclaredModel[] = [],
  over: Partial<CatalogSources> = {},
) {
  const catalog: BundledCatalog = { format: 1, models: bundled };
  return buildCatalog({
    bundled: catalog,
    config: { bundled_catalog: true, models },
    providers,
    created_default: 1_800_000_000,
    ...over,
  });
}

describe('models and endpoints', () => {
  const both = bundledModel('a/one', [endpoint('openai'), endpoint('groq')]);

  test('only endpoints of enabled providers are listed, and only models with such an endpoint', () => {
    const catalog = build([both, bundledModel('a/two', [endpoint('groq')])], [provider('openai')]);
    expect(catalog.models().map(({ id }) => id)).toEqual(['a/one']);
    expect(catalog.endpoints().map(({ id, tag }) => [id, tag])).toEqual([['openai|a/one', 'openai']]);
    expect(catalog.find('a/two')).toBeUndefined();
  });

  test('a model is found by id and by canonical slug, in exact case', () => {
    const catalog = build([both], [provider('openai')]);
    expect(catalog.find('a/one')).toBe(catalog.find('a/one-20250102'));
    expect(catalog.find('A/One')).toBeUndefined();
  });

  test('an id takes precedence over the canonical slug of another model', () => {
    const other = bundledModel('a/other', [endpoint('openai')], { canonical_slug: 'a/one' });
    expect(build([other, both], [provider('openai')]).find('a/one')?.id).toBe('a/one');
  });

  test('names of speakers are put in the text, except for OpenAI models and if a provider disables it', () => {
    const at = (...slugs: string[]) => slugs.map((slug) => endpoint(slug));
    const reader = provider('reader', { quirks: { names_in_text: false } });
    const bundled = [
      bundledModel('openai/gpt-9', at('openai', 'azure')),
      bundledModel('openai/gpt-oss-9b', at('groq')),
      bundledModel('meta-llama/llama-9', at('groq', 'xai')),
    ];
    const declared: DeclaredModel[] = [
      {
        id: 'acme/m',
        endpoints: [
          { provider: 'groq', upstream_model: 'm' },
          { provider: 'reader', upstream_model: 'm' },
        ],
      },
    ];
    const providers = ['openai', 'azure', 'groq', 'xai', 'ollama', 'anthropic'].map((slug) => provider(slug));
    const catalog = build(bundled, [...providers, reader], declared);
    const named = (id: string) => catalog.find(id)?.endpoints.map(({ quirks }) => quirks.names_in_text === true);
    expect(named('openai/gpt-9')).toEqual([false, false]);
    expect(named('openai/gpt-oss-9b')).toEqual([true]);
    expect(named('meta-llama/llama-9')).toEqual([true, true]);
    expect(named('acme/m')).toEqual([true, false]);
    expect(named('ollama/llama3.2:3b')).toEqual([true]);
  });

  test('models are listed newest first', () => {
    const older = bundledModel('a/older', [endpoint('openai')], { created: 1 });
    expect(
      build([older, both], [provider('openai')])
        .models()
        .map(({ id }) => id),
    ).toEqual(['a/one', 'a/older']);
  });

  test('a provider is found by slug or display name in any case', () => {
    const catalog = build([], [provider('google-ai-studio')]);
    for (const name of ['google-ai-studio', 'Google-AI-Studio', 'google ai studio', 'GOOGLE AI STUDIO']) {
      expect(catalog.provider(name)?.slug).toBe('google-ai-studio');
    }
    expect(catalog.provider('google')).toBeUndefined();
  });

  test('an endpoint may have another wire than its provider, and lacks parameters that the wire lacks', () => {
    const pro = bundledModel('a/pro', [endpoint('openai', { dialect: 'openai-responses' }), endpoint('groq')]);
    const [first, second] = build([pro], [provider('openai'), provider('groq')]).find('a/pro')!.endpoints;
    expect([first?.dialect, second?.dialect]).toEqual(['openai-responses', undefined]);
    expect(first?.supported_parameters).toEqual(expect.arrayContaining(['temperature', 'tools', 'max_tokens']));
    expect(first?.supported_parameters).not.toContain('seed');
    expect(second?.supported_parameters).toContain('seed');
  });

  test("Vertex AI's endpoints support the parameters of their model's wire", () => {
    const claude = endpoint('google-vertex', { dialect: 'anthropic-messages', model: 'claude-x' });
    const made = bundledModel('a/one', [endpoint('google-vertex', { variant: 'a' }), { ...claude, variant: 'b' }]);
    const vertex = provider('google-vertex', { dialect: 'gemini-generate-content' });
    const [ofGemini, ofClaude] = build([made], [vertex]).find('a/one')!.endpoints;
    expect(ofGemini?.supported_parameters).toEqual(expect.arrayContaining(['seed', 'logprobs', 'top_k']));
    expect(ofGemini?.supported_parameters).not.toContain('parallel_tool_calls');
    expect(ofClaude?.supported_parameters).toEqual(expect.arrayContaining(['parallel_tool_calls', 'top_k', 'stop']));
    expect(ofClaude?.supported_parameters).not.toContain('seed');
  });

  test('an endpoint lacks parameters that its model refuses', () => {
    const gemini = (model: string) =>
      bundledModel('a/gemini', [endpoint('google-ai-studio', { model, can: ['sampling'] })]);
    const studio = provider('google-ai-studio', { dialect: 'gemini-generate-content' });
    const [older, newer] = ['gemini-2.0-flash', 'gemini-2.5-flash'].map(
      (model) => build([gemini(model)], [studio]).endpoints()[0]?.supported_parameters,
    );
    expect(older).toEqual(
      expect.arrayContaining(['presence_penalty', 'frequency_penalty', 'logprobs', 'top_logprobs']),
    );
    expect(newer).toContain('temperature');
    for (const name of ['presence_penalty', 'frequency_penalty', 'logprobs', 'top_logprobs']) {
      expect(newer).not.toContain(name);
    }
  });

  test('Kimi from K2.5 on has fixed sampling at its maker, and not at other hosts', () => {
    const kimi = (slug: string, model: string) =>
      build([bundledModel('a/kimi', [endpoint(slug, { model, can: ['sampling'] })])], [provider(slug)]).endpoints()[0];
    for (const model of ['kimi-k2.5', 'kimi-k2.6', 'kimi-k3']) {
      expect(kimi('moonshotai', model)?.supported_parameters).not.toContain('temperature');
      expect(kimi('moonshotai', model)?.quirks.refused_parameters).toEqual(
        expect.arrayContaining(['temperature', 'top_p', 'presence_penalty', 'frequency_penalty']),
      );
    }
    expect(kimi('moonshotai', 'kimi-k2-0905-preview')?.supported_parameters).toContain('temperature');
    expect(kimi('groq', 'kimi-k2.6')?.supported_parameters).toContain('temperature');
  });

  test('an endpoint of another wire is excluded if the operator set the wire of its provider', () => {
    const pro = bundledModel('a/pro', [endpoint('openai', { dialect: 'openai-responses' })]);
    expect(build([pro], [provider('openai', { dialect: 'anthropic-messages' })]).models()).toEqual([]);
    const [only] = build([pro], [provider('openai', { dialect: 'openai-responses' })]).find('a/pro')!.endpoints;
    expect(only?.dialect).toBeUndefined();
  });

  test('a model with a declared wire gets the quirks of its name on that wire', () => {
    const declared = {
      id: 'a/one',
      endpoints: [{ provider: 'acme', upstream_model: 'x', dialect: 'openai-responses' }],
    };
    const catalog = build([], [provider('acme')], [declared as DeclaredModel], {
      modelQuirks: (wire) => (wire === 'openai-responses' ? { no_encrypted_reasoning: true } : {}),
    });
    expect(catalog.find('a/one')?.endpoints).toMatchObject([
      { dialect: 'openai-responses', quirks: { no_encrypted_reasoning: true } },
    ]);
  });
});

test('regional variants of a model are listed only if the operator’s provider has them', () => {
  const bundled = bundledModel('a/one', [
    endpoint('amazon-bedrock', { model: 'a.one' }),
    ...['eu', 'us', 'global'].map((variant) => endpoint('amazon-bedrock', { model: `${variant}.a.one`, variant })),
  ]);
  const models = (over: Partial<Provider>) =>
    build([bundled], [provider('amazon-bedrock', over)])
      .find('a/one')
      ?.endpoints.map(({ upstream_model: upstreamModel }) => upstreamModel);
  expect(models({})).toEqual(['a.one', 'eu.a.one', 'us.a.one', 'global.a.one']);
  expect(models({ variants: ['eu', 'global'] })).toEqual(['a.one', 'eu.a.one', 'global.a.one']);
  expect(models({ variants: [] })).toEqual(['a.one']);
});

describe('a declared model', () => {
  const bundled = bundledModel('a/one', [endpoint('openai'), endpoint('groq'), endpoint('groq', { variant: 'fast' })]);
  const on = [provider('openai'), provider('groq'), provider('acme')];

  test('changes facts of a bundled model and keeps the rest', () => {
    const model = build([bundled], on, [{ id: 'a/one', name: 'One', context_length: 5 }]).find('a/one');
    expect(model).toMatchObject({
      name: 'One',
      context_length: 5,
      created: 1_700_000_000,
      canonical_slug: 'a/one-20250102',
    });
    expect(model?.endpoints.length).toBe(3);
  });

  test('replaces all bundled endpoints of the same provider, and adds to the others', () => {
    const declared = { provider: 'groq', upstream_model: 'mine', pricing: { prompt: 7, completion: 8 } };
    const model = build([bundled], on, [{ id: 'a/one', endpoints: [declared] }]).find('a/one');
    expect(model?.endpoints.map(({ tag, upstream_model: upstreamModel }) => [tag, upstreamModel])).toEqual([
      ['groq', 'mine'],
      ['openai', 'upstream-name'],
    ]);
  });

  test('keeps bundled facts of the same endpoint unless they are declared', () => {
    const fact = endpoint('azure', {
      model: 'gpt-5',
      can: ['tools', 'reasoning', 'effort'],
      completion_max: 9,
      tiers: [{ prompt_tokens_over: 5, price: { prompt: 3, completion: 4 } }],
    });
    const [only] = build(
      [bundledModel('openai/gpt-5', [fact])],
      [provider('azure')],
      [{ id: 'openai/gpt-5', endpoints: [{ provider: 'azure', upstream_model: 'my-deployment' }] }],
    ).endpoints();
    expect(only).toMatchObject({
      upstream_model: 'my-deployment',
      max_completion_tokens: 9,
      pricing: { prompt: 1_000_000, completion: 2_000_000 },
      price_tiers: fact.tiers,
    });
    expect(only?.quirks.refused_parameters).toContain('temperature');
    expect(only?.supported_parameters).not.toContain('temperature');
  });

  test('has only its declared price, without the bundled tiers', () => {
    const tiers = [{ prompt_tokens_over: 5, price: { prompt: 3, completion: 4 } }];
    const pricing = { prompt: 7, completion: 8 };
    const [only] = build(
      [bundledModel('a/one', [endpoint('openai', { tiers })])],
      [provider('openai')],
      [{ id: 'a/one', endpoints: [{ provider: 'openai', upstream_model: 'mine', pricing }] }],
    ).endpoints();
    expect(only?.pricing).toEqual(pricing);
    expect(only).not.toHaveProperty('price_tiers');
  });

  test('has the bundled facts of its upstream model, also under another id', () => {
    const [, alias] = build(
      [bundledModel('openai/gpt-5', [endpoint('openai', { model: 'gpt-5', can: ['reasoning', 'effort'] })])],
      [provider('openai')],
      [{ id: 'acme/assistant', created: 1, endpoints: [{ provider: 'openai', upstream_model: 'gpt-5' }] }],
    ).endpoints();
    expect(alias).toMatchObject({ model: 'acme/assistant', pricing: { prompt: 1_000_000, completion: 2_000_000 } });
    expect(alias?.quirks.refused_parameters).toContain('temperature');
  });

  test('may be new, with default facts', () => {
    const catalog = build([], on, [
      { id: 'acme/new', endpoints: [{ provider: 'acme', upstream_model: 'n', variant: 'eu' }] },
    ]);
    expect(catalog.find('acme/new')).toMatchObject({
      canonical_slug: 'acme/new',
      name: 'acme/new',
      created: 1_800_000_000,
      input_modalities: ['text'],
      output_modalities: ['text'],
      tokenizer: 'Other',
      endpoints: [
        {
          id: 'acme/eu|acme/new',
          tag: 'acme/eu',
          supported_parameters: undefined,
          quantization: 'unknown',
          pricing: {},
        },
      ],
    });
  });

  test('is the only one without the bundled catalog', () => {
    const models = [{ id: 'acme/new', endpoints: [{ provider: 'acme', upstream_model: 'n' }] }];
    const catalog = build([bundled], on, models, { config: { bundled_catalog: false, models } });
    expect(catalog.models().map(({ id }) => id)).toEqual(['acme/new']);
  });
});

describe('parameters of an endpoint', () => {
  const only = (slug: string, over: Partial<BundledEndpoint>) =>
    build([bundledModel('a/one', [endpoint(slug, over)])], [provider(slug)]).endpoints()[0];

  test('follow the provider, without those that the model does not support', () => {
    expect(only('openai', {})?.supported_parameters).toEqual(
      expect.arrayContaining(['temperature', 'tools', 'max_completion_tokens', 'structured_outputs']),
    );
    const plain = only('openai', { can: ['sampling'] })?.supported_parameters;
    expect(plain).toContain('prediction');
    for (const name of [
      'tools',
      'tool_choice',
      'structured_outputs',
      'reasoning',
      'reasoning_effort',
      'verbosity',
      'top_k',
    ]) {
      expect(plain).not.toContain(name);
    }
    expect(only('together', {})?.supported_parameters).toEqual(
      expect.arrayContaining(['top_k', 'min_p', 'repetition_penalty']),
    );
  });

  test('include verbosity only for a Claude with effort levels', () => {
    const claude = (effort: boolean) =>
      build([bundledModel('anthropic/x', [endpoint('anthropic', {})])], [provider('anthropic')], [], {
        modelQuirks: () => (effort ? { effort_max: 'max' } : {}),
      }).endpoints()[0]?.supported_parameters;
    expect(claude(true)).toContain('verbosity');
    expect(claude(false)).not.toContain('verbosity');
  });

  test('omit the effort for a model without effort levels', () => {
    const fixed = only('xai', { can: ['tools', 'sampling', 'reasoning'] });
    expect(fixed?.quirks.reasoning_field).toBe('none');
    expect(fixed?.supported_parameters).toContain('reasoning');
    expect(fixed?.supported_parameters).not.toContain('reasoning_effort');
    expect(only('xai', { can: ['reasoning', 'effort'] })?.quirks.reasoning_field).toBeUndefined();
    expect(only('z-ai', { can: ['reasoning'] })?.quirks.reasoning_field).toBe('thinking');
  });

  test('of an OpenAI reasoning model exclude sampling and stop, and include max_completion_tokens', () => {
    const reasoning = only('openai', { model: 'gpt-5.5', can: ['tools', 'structured', 'reasoning', 'effort'] });
    expect(reasoning?.supported_parameters).toEqual(expect.arrayContaining(['reasoning_effort', 'verbosity']));
    for (const name of ['temperature', 'top_p', 'stop', 'logprobs', 'frequency_penalty', 'prediction']) {
      expect(reasoning?.supported_parameters).not.toContain(name);
      expect(reasoning?.quirks.refused_parameters).toContain(name);
    }
    expect(reasoning?.quirks.output_bound_field).toBe('max_completion_tokens');
  });

  test('of OpenAI reasoning models before GPT-5 exclude parallel_tool_calls, and those of later ones do not', () => {
    const refused = (model: string) =>
      only('openai', { model, can: ['tools', 'reasoning', 'effort'] })?.quirks.refused_parameters;
    expect(refused('o4-mini')).toContain('parallel_tool_calls');
    expect(refused('gpt-5')).not.toContain('parallel_tool_calls');
  });

  test('media that a host does not accept are not among its modalities, unless the operator declares them', () => {
    const model = bundledModel('a/one', [endpoint('openai', { input: ['text'] }), endpoint('groq')], {
      input: ['text', 'image'],
    });
    const on = [provider('openai'), provider('groq')];
    const taken = (declared: DeclaredModel[]) =>
      build([model], on, declared)
        .endpoints()
        .map(({ input_modalities: inputModalities }) => inputModalities);
    expect(taken([])).toEqual([['text'], ['text', 'image']]);
    expect(taken([{ id: 'a/one', input_modalities: ['text', 'file'] }])).toEqual([
      ['text', 'file'],
      ['text', 'file'],
    ]);
  });

  test('a declared context of a model applies to all endpoints without a declared one', () => {
    const model = bundledModel('a/one', [endpoint('openai', { context: 1_000 }), endpoint('groq', { context: 2_000 })]);
    const on = [provider('openai'), provider('groq')];
    const contexts = (endpoints: DeclaredModel['endpoints']) =>
      build([model], on, [{ id: 'a/one', context_length: 3_000, ...(endpoints ? { endpoints } : {}) }])
        .endpoints()
        .map(({ provider: slug, context_length: contextLength }) => [slug, contextLength]);
    expect(contexts(undefined)).toEqual([
      ['openai', 3_000],
      ['groq', 3_000],
    ]);
    expect(contexts([{ provider: 'groq', upstream_model: 'a-one', context_length: 500 }])).toEqual([
      ['groq', 500],
      ['openai', 3_000],
    ]);
    expect(contexts([{ provider: 'groq', upstream_model: 'a-one' }])).toEqual([
      ['groq', 3_000],
      ['openai', 3_000],
    ]);
  });

  test("quirks of the model's name take precedence over the provider's", () => {
    const claude = bundledModel('anthropic/x', [endpoint('anthropic', { model: 'claude-x' })]);
    const catalog = build([claude], [provider('anthropic')], [], {
      modelQuirks: (dialect, upstream) =>
        upstream === 'claude-x' && dialect === 'anthropic-messages' ? { no_prefill: true } : {},
    });
    expect(catalog.endpoints()[0]?.quirks).toEqual({ native_search: 'anthropic', no_prefill: true });
  });

  test('a cache price implies an automatic cache, except on the Messages wire', () => {
    const price = { prompt: 1, completion: 1, input_cache_read: 1 };
    expect(only('openai', { price })?.supports_implicit_caching).toBe(true);
    expect(only('openai', {})?.supports_implicit_caching).toBe(false);
    expect(only('anthropic', { price })?.supports_implicit_caching).toBe(false);
  });
});

describe('a local server', () => {
  const catalog = build([], [provider('ollama'), provider('openai')]);

  test('serves any model under its own name, at a price of zero', () => {
    expect(catalog.find('ollama/llama3.2:3b')).toMatchObject({
      id: 'ollama/llama3.2:3b',
      endpoints: [
        { id: 'ollama|ollama/llama3.2:3b', upstream_model: 'llama3.2:3b', pricing: { prompt: 0, completion: 0 } },
      ],
    });
    expect(catalog.find('ollama/Qwen/Qwen3-8B')?.endpoints[0]?.upstream_model).toBe('Qwen/Qwen3-8B');
  });

  test.each(['nomic-embed-text', 'mxbai-embed-large:latest', 'BAAI/bge-m3', 'intfloat/e5-large-v2', 'all-minilm'])(
    'makes embeddings with a model of such a name: %s',
    (name) => {
      const model = catalog.find(`ollama/${name}`);
      expect(model?.output_modalities).toEqual(['embeddings']);
      expect(model?.endpoints[0]?.supported_parameters).toEqual([]);
    },
  );

  test('is the only kind of provider that serves any name', () => {
    for (const id of ['openai/unknown', 'ollama/', 'ollama', 'vllm/x']) expect(catalog.find(id)).toBeUndefined();
  });
});

describe('price changes', () => {
  const changes = [
    { from_ms: 1_000, pricing: { prompt: 1, completion: 1 }, price_tiers: [] },
    { from_ms: 2_000, pricing: { prompt: 2, completion: 2 } },
  ];
  const catalog = build(
    [
      bundledModel('a/one', [
        endpoint('openai', {
          price_changes: changes,
          tiers: [{ prompt_tokens_over: 5, price: { prompt: 9, completion: 9 } }],
          service_tiers: { flex: { pricing: { prompt: 8, completion: 8 } } },
        }),
      ]),
      bundledModel('a/two', [endpoint('openai', { model: 'other', price_changes: [changes[1]!] })]),
    ],
    [provider('openai')],
  );
  const promptAt = (nowMs: number, id = 'a/one') => catalog.at(nowMs).find(id)?.endpoints[0]?.pricing.prompt;

  test.each([
    [0, 1_000_000],
    [999, 1_000_000],
    [1_000, 1],
    [1_999, 1],
    [2_000, 2],
    [9_999, 2],
    [500, 1_000_000],
  ])('at %d ms a prompt token costs %d', (nowMs, prompt) => expect(promptAt(nowMs)).toBe(prompt));

  test('of each endpoint have their own time', () => {
    expect([promptAt(1_500, 'a/two'), promptAt(2_500, 'a/two')]).toEqual([1_000_000, 2]);
  });

  test('replace the whole price: tiers of the old price end too', () => {
    const [before] = catalog.at(0).find('a/one')!.endpoints;
    const [after] = catalog.at(2_000).find('a/one')!.endpoints;
    expect([before?.price_tiers, before?.service_tiers]).not.toContain(undefined);
    expect([after?.price_tiers, after?.service_tiers]).toEqual([undefined, undefined]);
    expect(after).not.toHaveProperty('from_ms');
  });

  test('between two changes the catalog is one object, from which those of other times are available', () => {
    expect(catalog.at(1_000)).toBe(catalog.at(1_999));
    expect(catalog.at(2_000).at(0)).toBe(catalog);
    expect(catalog.at(1_000).endpoints()[0]?.pricing).toEqual({ prompt: 1, completion: 1 });
  });

  test('do not affect a model that was already looked up', () => {
    const admitted = catalog.at(1_500).find('a/one')!;
    catalog.at(2_500);
    expect(admitted.endpoints[0]?.pricing.prompt).toBe(1);
  });

  test('a catalog without changes is always the same object', () => {
    const still = build([bundledModel('a/one', [endpoint('openai')])], [provider('openai')]);
    expect(still.at(Number.MAX_SAFE_INTEGER)).toBe(still);
  });
});

test('a model after its last day is expired and still listed', () => {
  const catalog = build(
    [bundledModel('a/one', [endpoint('openai')])],
    [provider('openai')],
    [{ id: 'a/one', expiration_date: '2026-03-04' }],
  );
  const isExpired = (time: string) => catalog.at(Date.parse(time)).find('a/one')?.is_expired;
  expect(isExpired('2026-03-04T23:59:59.999Z')).toBeUndefined();
  expect(isExpired('2026-03-05T00:00:00Z')).toBe(true);
});
