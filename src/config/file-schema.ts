import Type, { type Static, type TSchema } from 'typebox';
import { soundFormats } from '../audio/sound.ts';
import { limits } from '../limits.ts';
import { embeddingWires } from '../providers/embeddings/dialect.ts';
import type { Quirks } from '../providers/quirks.ts';
import { transcriptionWires } from '../providers/transcription/dialect.ts';
import { parameters, quantizations } from '../schemas/endpoint.ts';
import { wires } from '../schemas/inner.ts';
import { categories, inputModalities, outputModalities, tokenizers } from '../schemas/model.ts';
import { tokenPrices, unitPrices } from '../schemas/prices.ts';
import { searchEngines } from '../schemas/web-search.ts';

/**
 * What `gateway.yaml` may hold. Every `description` completes the sentence "… must be", so that it is also the message
 * for a wrong value.
 */

const strict = { additionalProperties: false };
const oneOf = <const T extends readonly string[]>(values: T) =>
  Type.Unsafe<T[number]>(Type.Enum([...values], { description: `one of ${values.join(', ')}` }));
const listOf = <const T extends readonly string[]>(values: T) =>
  Type.Array(oneOf(values), { description: `a list of one or more of ${values.join(', ')}`, minItems: 1 });
const text = (description = 'a text that is not empty') => Type.String({ minLength: 1, description });
const flag = Type.Boolean({ description: 'true or false' });
const count = Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: 'a whole number of 1 or more' });
const milliseconds = Type.Integer({
  minimum: 1,
  maximum: 86_400_000,
  description: 'a whole number of milliseconds, at most a day',
});
const connections = Type.Integer({
  minimum: 1,
  maximum: limits.connections_setting_max,
  description: `a whole number from 1 to ${limits.connections_setting_max}`,
});
const day = Type.String({
  pattern: '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$',
  description: 'a day such as 2026-01-31',
});
const names = (description: string) => Type.Array(text(), { description });

/** Named options of a dialect; see `Quirks`. */
const QuirksSection = Type.Object(
  {
    inline_media: Type.Optional(flag),
    prefill: Type.Optional(flag),
    no_native_tools: Type.Optional(flag),
    native_search: Type.Optional(oneOf(['openai', 'xai', 'anthropic', 'google', 'search_model', 'perplexity'])),
    output_bound_field: Type.Optional(oneOf(['max_tokens', 'max_completion_tokens'])),
    system_role: Type.Optional(oneOf(['system', 'developer', 'user'])),
    plain_text: Type.Optional(flag),
    tool_properties: Type.Optional(flag),
    stop_sequences_max: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.stop_sequences_max,
        description: `a whole number from 1 to ${limits.stop_sequences_max}`,
      }),
    ),
    temperature_max: Type.Optional(Type.Number({ minimum: 0, maximum: 2, description: 'a number from 0 to 2' })),
    no_stream_usage: Type.Optional(flag),
    refused_parameters: Type.Optional(names('a list of parameter names')),
    cache_control: Type.Optional(flag),
    replay_reasoning: Type.Optional(oneOf(['reasoning_content', 'reasoning', 'reasoning_details', 'thinking_part'])),
    think_tags: Type.Optional(flag),
    think_in_reasoning: Type.Optional(flag),
    reasoning_field: Type.Optional(
      oneOf(['reasoning_effort', 'reasoning', 'thinking', 'thinking_effort', 'enable_thinking', 'none']),
    ),
    lost_reasoning: Type.Optional(oneOf(['off', 'placeholder'])),
    thinking_or_forced_tool: Type.Optional(flag),
    alternating_roles: Type.Optional(flag),
    names_in_text: Type.Optional(flag),
    format_alone: Type.Optional(flag),
    logprobs_count: Type.Optional(flag),
    continue_final_message: Type.Optional(flag),
    reasoning_efforts: Type.Optional(names('a list of effort levels, weakest first')),
    prefill_prefix: Type.Optional(flag),
    tool_choice_any: Type.Optional(flag),
    allowed_tools: Type.Optional(flag),
    tool_call_id: Type.Optional(oneOf(['mistral9'])),
    random_seed: Type.Optional(flag),
    assistant_between: Type.Optional(flag),
    document_url: Type.Optional(flag),
    inline_images: Type.Optional(flag),
    google_signatures: Type.Optional(flag),
    api_key_header: Type.Optional(text('the name of a header')),
    query: Type.Optional(text('a query string without the question mark')),
    path: Type.Optional(Type.String({ pattern: '^/', description: 'a path that starts with a slash' })),
    cached_tokens_header: Type.Optional(text('the name of a header')),
    extra_body: Type.Optional(Type.Record(Type.String(), Type.Any(), { description: 'an object of fields to send' })),
    reasoning_format: Type.Optional(oneOf(['openai-responses-v1', 'azure-openai-responses-v1', 'xai-responses-v1'])),
    no_encrypted_reasoning: Type.Optional(flag),
    plain_reasoning_items: Type.Optional(flag),
    reasoning_summary: Type.Optional(oneOf(['auto', 'concise', 'detailed'])),
    text_before_calls: Type.Optional(flag),
    unpriced_tools: Type.Optional(flag),
    x_search: Type.Optional(flag),
    embedding_batch: Type.Optional(
      Type.Object(
        { inputs_max: Type.Optional(count), tokens_max: Type.Optional(count) },
        { ...strict, description: 'an object with inputs_max and tokens_max' },
      ),
    ),
    embedding_texts_only: Type.Optional(flag),
    dimensions_field: Type.Optional(oneOf(['dimensions', 'output_dimension'])),
    embedding_purpose: Type.Optional(flag),
    transcription_formats: Type.Optional(listOf(soundFormats)),
    transcription_plain: Type.Optional(flag),
    transcription_seconds_min: Type.Optional(count),
    google_cloud: Type.Optional(flag),
    token_url: Type.Optional(Type.String({ pattern: '^https?://', description: 'an http(s) address' })),
    no_sampling: Type.Optional(flag),
    one_sampling: Type.Optional(flag),
    thinking: Type.Optional(oneOf(['manual', 'adaptive', 'none'])),
    effort_max: Type.Optional(oneOf(['high', 'xhigh', 'max'])),
    no_prefill: Type.Optional(flag),
    mid_system: Type.Optional(flag),
    json_schema_shim: Type.Optional(flag),
    betas: Type.Optional(names('a list of features of the header anthropic-beta')),
    no_xhigh: Type.Optional(flag),
    thinking_default: Type.Optional(oneOf(['on', 'always'])),
    thinking_hidden: Type.Optional(flag),
    no_forced_tool: Type.Optional(flag),
  } satisfies Record<keyof Quirks, TSchema>,
  { ...strict, description: 'an object of named options' },
);

/** Who is told of calls whose workspace says so. */
const BroadcastSection = Type.Object(
  {
    type: oneOf(['otel-collector', 'webhook']),
    url: Type.String({ pattern: '^https?://', description: 'an http(s) address' }),
    name: Type.Optional(text()),
    headers: Type.Optional(Type.Record(Type.String(), text(), { description: 'an object of header names and values' })),
    secret: Type.Optional(text('a secret, or a reference to an environment variable')),
    workspaces: Type.Optional(names('a list of ids or slugs of workspaces')),
    include_content: Type.Optional(flag),
    sampling_rate: Type.Optional(
      Type.Number({ minimum: 0.0001, maximum: 1, description: 'a number from 0.0001 to 1' }),
    ),
  },
  { ...strict, description: 'an object with type and url' },
);

const ProviderSection = Type.Object(
  {
    name: Type.Optional(text()),
    dialect: Type.Optional(oneOf(wires)),
    embeddings_dialect: Type.Optional(oneOf(embeddingWires)),
    transcription_dialect: Type.Optional(oneOf(transcriptionWires)),
    base_url: Type.Optional(text('a URL that starts with http:// or https://')),
    api_key: Type.Optional(text('a key, or a reference to an environment variable')),
    headers: Type.Optional(Type.Record(Type.String(), text(), { description: 'an object of header names and values' })),
    quirks: Type.Optional(QuirksSection),
    variants: Type.Optional(Type.Array(text(), { description: 'a list of variants of models' })),
    abort_stops_billing: Type.Optional(flag),
    attempts_url: Type.Optional(text('a URL that starts with http:// or https://')),
    data_policy: Type.Optional(
      Type.Object(
        {
          training: Type.Optional(
            Type.Union([Type.Boolean(), Type.Literal('unknown')], { description: 'true, false or unknown' }),
          ),
          retention: Type.Optional(
            Type.String({
              pattern: '^(none|unknown|[1-9]\\d{0,4}d)$',
              description: 'none, unknown or a number of days such as 30d',
            }),
          ),
        },
        { ...strict, description: 'an object with training and retention' },
      ),
    ),
  },
  { ...strict, description: 'an object that describes a provider' },
);

const price = (per: string) =>
  Type.Union([Type.Number({ minimum: 0 }), Type.String({ pattern: '^\\d+(\\.\\d+)?$' })], {
    description: `a price in USD ${per}, 0 or more`,
  });
const prices = <Name extends string>(list: readonly Name[], per: string) =>
  Object.fromEntries(list.map((name) => [name, Type.Optional(price(per))])) as Record<
    Name,
    ReturnType<typeof Type.Optional<ReturnType<typeof price>>>
  >;

const listPrices = {
  ...prices(tokenPrices, 'per million tokens'),
  ...prices(unitPrices, 'each'),
  discount: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: 'a fraction from 0 to 1' })),
};

const withTiers = {
  ...listPrices,
  tiers: Type.Optional(
    Type.Array(
      Type.Object(
        {
          over: Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: 'a number of tokens' }),
          ...listPrices,
        },
        { ...strict, description: 'an object with over and prices in USD' },
      ),
      { minItems: 1, description: 'a list of prices for prompts over some length' },
    ),
  ),
};

const withServiceTiers = {
  ...withTiers,
  service_tiers: Type.Optional(
    Type.Record(Type.String(), Type.Object(withTiers, { ...strict, description: 'an object of prices in USD' }), {
      description: 'an object of prices by the name of a service tier',
    }),
  ),
};

const PricingSection = Type.Object(
  {
    per: Type.Optional(oneOf(['million', 'token'])),
    ...withServiceTiers,
    changes: Type.Optional(
      Type.Array(
        Type.Object(
          {
            from: Type.String({
              pattern: '^\\d{4}-\\d\\d-\\d\\d(T\\d\\d:\\d\\d(:\\d\\d)?(Z|[+-]\\d\\d:\\d\\d))?$',
              description: 'a day such as 2027-01-31, which begins in UTC, or a time such as 2027-01-31T09:00:00Z',
            }),
            ...withServiceTiers,
          },
          { ...strict, description: 'an object with from and prices in USD' },
        ),
        { minItems: 1, description: 'a list of later prices' },
      ),
    ),
  },
  { ...strict, description: 'an object of prices in USD' },
);

const EndpointSection = Type.Object(
  {
    provider: text('the slug of a provider'),
    variant: Type.Optional(
      Type.String({ pattern: '^[a-z0-9][a-z0-9._-]*$', description: 'a short name such as turbo or eu-west' }),
    ),
    upstream_model: text("the provider's name of the model"),
    dialect: Type.Optional(oneOf(wires)),
    pricing: Type.Optional(PricingSection),
    context_length: Type.Optional(count),
    max_completion_tokens: Type.Optional(count),
    max_prompt_tokens: Type.Optional(count),
    supported_parameters: Type.Optional(Type.Array(oneOf(parameters), { description: 'a list of parameter names' })),
    supports_implicit_caching: Type.Optional(flag),
    quantization: Type.Optional(oneOf(quantizations)),
    quirks: Type.Optional(QuirksSection),
  },
  { ...strict, description: 'an object with provider and upstream_model' },
);

const ModelSection = Type.Object(
  {
    canonical_slug: Type.Optional(Type.String({ pattern: '^[^/\\s]+/\\S+$', description: 'a name as author/slug' })),
    name: Type.Optional(text()),
    description: Type.Optional(text()),
    created: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 100_000_000_000, description: 'a time in Unix seconds' }),
    ),
    context_length: Type.Optional(count),
    input_modalities: Type.Optional(listOf(inputModalities)),
    output_modalities: Type.Optional(listOf(outputModalities)),
    tokenizer: Type.Optional(oneOf(tokenizers)),
    knowledge_cutoff: Type.Optional(day),
    expiration_date: Type.Optional(day),
    model_hub_id: Type.Optional(text()),
    distillable: Type.Optional(flag),
    categories: Type.Optional(Type.Array(oneOf(categories), { description: `a list of ${categories.join(', ')}` })),
    endpoints: Type.Optional(
      Type.Array(EndpointSection, { minItems: 1, description: 'a list of one endpoint or more' }),
    ),
  },
  { ...strict, description: 'an object that describes a model' },
);

const TimeoutsSection = Type.Object(
  {
    upstream_connect_ms_max: Type.Optional(milliseconds),
    upstream_headers_ms_max: Type.Optional(milliseconds),
    upstream_first_token_ms_max: Type.Optional(milliseconds),
    upstream_idle_ms_max: Type.Optional(milliseconds),
    upstream_total_ms_max: Type.Optional(milliseconds),
    heartbeat_first_ms: Type.Optional(milliseconds),
    heartbeat_ms: Type.Optional(milliseconds),
    shutdown_ms_max: Type.Optional(milliseconds),
    shutdown_grace_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: limits.shutdown_grace_setting_ms_max,
        description: `a whole number of milliseconds from 0 to ${limits.shutdown_grace_setting_ms_max}`,
      }),
    ),
  },
  { ...strict, description: 'an object of limits in milliseconds' },
);

const AuthSection = Type.Object(
  {
    public_url: Type.Optional(text('a URL that starts with http:// or https://')),
    codes_by_api_key: Type.Optional(oneOf(['on', 'off'])),
    oidc: Type.Optional(
      Type.Object(
        {
          issuer: text('the URL of an OpenID Connect issuer'),
          client_id: text(),
          client_secret: Type.Optional(text('a secret, or a reference to an environment variable')),
          scopes: Type.Optional(names('a list of scopes')),
          provision: Type.Optional(oneOf(['admin', 'member', 'none'])),
          allowed_email_domains: Type.Optional(
            Type.Array(Type.String({ pattern: '^[^@\\s]+$', description: 'a domain such as example.com' }), {
              minItems: 1,
              description: 'a list of domains',
            }),
          ),
        },
        { ...strict, description: 'an object with issuer and client_id' },
      ),
    ),
  },
  { ...strict, description: 'an object with public_url, codes_by_api_key and oidc' },
);

const rate = Type.Union([count, Type.Literal('unlimited')], {
  description: 'a whole number of 1 or more, or unlimited',
});
const RateAmountsSection = Type.Object(
  { requests_per_minute: Type.Optional(rate), tokens_per_minute: Type.Optional(rate) },
  { ...strict, description: 'an object with requests_per_minute and tokens_per_minute' },
);

const RateLimitsSection = Type.Object(
  {
    per_key: Type.Optional(RateAmountsSection),
    per_model: Type.Optional(RateAmountsSection),
    per_key_and_model: Type.Optional(RateAmountsSection),
    keys: Type.Optional(
      Type.Record(Type.String(), RateAmountsSection, {
        description: 'an object of limits by the hash or name of a key',
      }),
    ),
    models: Type.Optional(
      Type.Record(Type.String(), RateAmountsSection, {
        description: 'an object of limits by the id of a model, or a pattern',
      }),
    ),
    free_models: Type.Optional(
      Type.Union(
        [
          Type.Literal('off'),
          Type.Object(
            {
              requests_per_minute: Type.Optional(count),
              requests_per_day: Type.Optional(count),
              requests_per_day_funded: Type.Optional(count),
              funded_usd: Type.Optional(
                Type.Number({ minimum: 0, maximum: limits.usd_max, description: 'an amount of USD, 0 or more' }),
              ),
            },
            strict,
          ),
        ],
        {
          description:
            'off, or an object with requests_per_minute, requests_per_day, requests_per_day_funded and funded_usd',
        },
      ),
    ),
    uncounted: Type.Optional(oneOf(['refuse', 'allow'])),
  },
  {
    ...strict,
    description: 'an object with per_key, per_model, per_key_and_model, keys, models, free_models and uncounted',
  },
);

const address = text('a URL that starts with http:// or https://');
const engineKey = text('a key, or a reference to an environment variable');
const pricePerSearch = Type.Number({
  minimum: 0,
  maximum: limits.unit_price_usd_max,
  description: 'an amount of USD, 0 or more',
});
/** A search engine; those that are somebody's service have a key, and those of the operator an address. */
const EngineSection = Type.Object(
  {
    api_key: Type.Optional(engineKey),
    base_url: Type.Optional(address),
    url: Type.Optional(address),
    price_per_search_usd: Type.Optional(pricePerSearch),
  },
  { ...strict, description: 'an object with api_key, base_url (or url) and price_per_search_usd' },
);

/** An analyzer with the API of Presidio. */
const AnalyzerSection = Type.Object(
  {
    url: address,
    api_key: Type.Optional(engineKey),
    language: Type.Optional(text('a language code of the analyzer, such as en')),
    score_min: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: 'a fraction from 0 to 1' })),
  },
  { ...strict, description: 'an object with url, api_key, language and score_min' },
);

const OcrSection = Type.Object(
  {
    engine: oneOf(['mistral-ocr'] as const),
    api_key: Type.Optional(engineKey),
    base_url: Type.Optional(address),
    model: Type.Optional(text()),
    price_per_page_usd: Type.Optional(pricePerSearch),
  },
  { ...strict, description: 'an object with engine, api_key, base_url, model and price_per_page_usd' },
);

const PluginsSection = Type.Object(
  {
    file_parser: Type.Optional(
      Type.Object({ ocr: Type.Optional(OcrSection) }, { ...strict, description: 'an object with ocr' }),
    ),
    web: Type.Optional(
      Type.Object(
        {
          engine: Type.Optional(oneOf(searchEngines)),
          engines: Type.Optional(
            Type.Object(
              {
                exa: Type.Optional(EngineSection),
                firecrawl: Type.Optional(EngineSection),
                parallel: Type.Optional(EngineSection),
                searxng: Type.Optional(EngineSection),
              },
              { ...strict, description: `an object of search engines: ${searchEngines.join(', ')}` },
            ),
          ),
        },
        { ...strict, description: 'an object with engine and engines' },
      ),
    ),
  },
  { ...strict, description: 'an object with file_parser and web' },
);

const sorts = ['price', 'throughput', 'latency', 'exacto'] as const;
const routerModels = Type.Array(text(), {
  minItems: 1,
  maxItems: limits.router_models_max,
  description: `a list of 1 to ${limits.router_models_max} model ids`,
});

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const ConfigFile = Type.Object(
  {
    bundled_catalog: Type.Optional(flag),
    providers: Type.Optional(
      Type.Record(Type.String(), ProviderSection, { description: 'an object of providers by slug' }),
    ),
    models: Type.Optional(
      Type.Record(Type.String(), ModelSection, { description: 'an object of models by author/slug' }),
    ),
    auth: Type.Optional(AuthSection),
    timeouts: Type.Optional(TimeoutsSection),
    ledger: Type.Optional(
      Type.Object(
        {
          journal_sync: Type.Optional(oneOf(['group', 'os'])),
          journal_keep_hours: Type.Optional(
            Type.Number({
              minimum: 0,
              maximum: limits.journal_keep_hours_max,
              description: `a number of hours from 0 to ${limits.journal_keep_hours_max}`,
            }),
          ),
          journal_keep_bytes: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: Number.MAX_SAFE_INTEGER,
              description: 'a whole number of bytes of 0 or more',
            }),
          ),
          lost_node_release_after: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 31_536_000, description: 'a whole number of seconds, at most a year' }),
          ),
          unknown_price: Type.Optional(oneOf(['refuse', 'allow'])),
          budgets: Type.Optional(oneOf(['strict', 'soft'])),
          hold: Type.Optional(oneOf(['full', 'sliced'])),
          unknown_outcome: Type.Optional(oneOf(['hold', 'metered'])),
          default_output_tokens: Type.Optional(count),
          min_output_tokens: Type.Optional(count),
          on_store_outage: Type.Optional(
            Type.Object(
              {
                serve_for: Type.Integer({
                  minimum: 1,
                  maximum: limits.serve_without_store_seconds_max,
                  description: `a whole number of seconds from 1 to ${limits.serve_without_store_seconds_max}`,
                }),
              },
              { ...strict, description: 'an object with serve_for' },
            ),
          ),
        },
        {
          ...strict,
          description:
            'an object with journal_sync, journal_keep_hours, journal_keep_bytes, lost_node_release_after, unknown_price, budgets, hold, unknown_outcome, default_output_tokens, min_output_tokens and on_store_outage',
        },
      ),
    ),
    database: Type.Optional(
      Type.Object(
        {
          connections: Type.Optional(
            Type.Integer({
              minimum: limits.database_connections_min,
              maximum: limits.database_connections_max,
              description: `a whole number from ${limits.database_connections_min} to ${limits.database_connections_max}`,
            }),
          ),
        },
        { ...strict, description: 'an object with connections' },
      ),
    ),
    http: Type.Optional(
      Type.Object(
        {
          trusted_proxies: Type.Optional(
            Type.Array(text('an IP address, or a range such as 10.0.0.0/8'), {
              maxItems: limits.trusted_proxies_max,
              description: `a list of at most ${limits.trusted_proxies_max} IP addresses and ranges`,
            }),
          ),
          connections_max: Type.Optional(connections),
          connections_per_address_max: Type.Optional(connections),
        },
        {
          ...strict,
          description: 'an object with trusted_proxies, connections_max and connections_per_address_max',
        },
      ),
    ),
    metrics: Type.Optional(
      Type.Object(
        {
          token: Type.Optional(text('a secret, or a reference to an environment variable')),
          host: Type.Optional(text('a host name or an IP address')),
          port: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 65_535, description: 'a whole number from 1 to 65535' }),
          ),
        },
        { ...strict, description: 'an object with token, host and port' },
      ),
    ),
    limits: Type.Optional(
      Type.Object(
        {
          management_requests_per_minute: Type.Optional(count),
          memory_bytes: Type.Optional(
            Type.Integer({
              minimum: limits.memory_bytes_setting_min,
              maximum: limits.memory_bytes_setting_max,
              description: `a whole number of bytes from ${limits.memory_bytes_setting_min} to ${limits.memory_bytes_setting_max}`,
            }),
          ),
        },
        { ...strict, description: 'an object with management_requests_per_minute and memory_bytes' },
      ),
    ),
    rate_limits: Type.Optional(RateLimitsSection),
    guardrails: Type.Optional(
      Type.Object(
        {
          on_failure: Type.Optional(oneOf(['block', 'allow'])),
          timeout_ms: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: limits.analysis_ms_max,
              description: `a whole number of milliseconds from 1 to ${limits.analysis_ms_max}`,
            }),
          ),
          phone_regions: Type.Optional(
            Type.Array(
              Type.String({ pattern: '^[A-Z]{2}$', description: 'a country code of two capital letters (ISO 3166)' }),
              {
                minItems: 1,
                maxItems: limits.phone_regions_max,
                uniqueItems: true,
                description: `a list of at most ${limits.phone_regions_max} countries (ISO 3166)`,
              },
            ),
          ),
          analyzer: Type.Optional(AnalyzerSection),
        },
        { ...strict, description: 'an object with on_failure, timeout_ms, phone_regions and analyzer' },
      ),
    ),
    routing: Type.Optional(
      Type.Object(
        {
          continuation: Type.Optional(flag),
          hedge: Type.Optional(flag),
          hedge_share: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: 'a fraction from 0 to 1' })),
          auto_models: Type.Optional(routerModels),
          free_models: Type.Optional(
            Type.Union([Type.Literal('all'), routerModels], { description: 'all, or a list of model ids' }),
          ),
          users: Type.Optional(
            Type.Record(
              Type.String(),
              Type.Object(
                {
                  default_text_model: Type.Optional(text('the id of a model')),
                  default_provider_sort: Type.Optional(oneOf(sorts)),
                },
                { ...strict, description: 'an object with default_text_model and default_provider_sort' },
              ),
              { description: 'an object of defaults by the id of a user' },
            ),
          ),
        },
        {
          ...strict,
          description: 'an object with continuation, hedge, hedge_share, auto_models, free_models and users',
        },
      ),
    ),
    compatibility: Type.Optional(
      Type.Object(
        {
          endpoint_status: Type.Optional(oneOf(['string', 'integer'])),
          sampler_off_values: Type.Optional(oneOf(['refuse', 'ignore'])),
        },
        { ...strict, description: 'an object with endpoint_status and sampler_off_values' },
      ),
    ),
    media: Type.Optional(
      Type.Object(
        {
          private_hosts: Type.Optional(
            Type.Array(
              Type.String({
                pattern: '^[^\\s/@?#]+$',
                description: 'a host, or host:port, without a scheme or a path',
              }),
              { description: 'a list of hosts' },
            ),
          ),
          ports: Type.Optional(
            Type.Array(Type.Integer({ minimum: 1, maximum: 65_535, description: 'the number of a port' }), {
              description: 'a list of ports',
              minItems: 1,
            }),
          ),
          buckets: Type.Optional(
            Type.Array(
              Type.String({
                pattern: '^(s3|gs)://[A-Za-z0-9][A-Za-z0-9._-]*$',
                description: 'a bucket such as s3://media or gs://media',
              }),
              { description: 'a list of buckets' },
            ),
          ),
        },
        { ...strict, description: 'an object with private_hosts, ports and buckets' },
      ),
    ),
    responses: Type.Optional(
      Type.Object(
        {
          store: Type.Optional(Type.Boolean({ description: 'true or false' })),
          retention_days: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 3_650, description: 'a number of days, at most ten years' }),
          ),
        },
        { ...strict, description: 'an object with store and retention_days' },
      ),
    ),
    reasoning_state: Type.Optional(
      Type.Object(
        {
          keep: Type.Optional(oneOf(['store', 'memory', 'off'])),
          hours: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 8_760, description: 'a number of hours, at most a year' }),
          ),
        },
        { ...strict, description: 'an object with keep and hours' },
      ),
    ),
    probes: Type.Optional(
      Type.Object(
        {
          usd_per_day: Type.Number({
            exclusiveMinimum: 0,
            maximum: limits.usd_max,
            description: `an amount of USD above 0, at most ${limits.usd_max}`,
          }),
          every_minutes: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 1_440, description: 'a number of minutes, at most a day' }),
          ),
          models: Type.Optional(names('a list of ids of models')),
        },
        { ...strict, description: 'an object with usd_per_day, every_minutes and models' },
      ),
    ),
    plugins: Type.Optional(PluginsSection),
    logging: Type.Optional(
      Type.Object(
        {
          level: Type.Optional(oneOf(logLevels)),
          retention_days: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: limits.logged_content_days_max,
              description: 'a whole number of days, at most ten years',
            }),
          ),
          broadcast: Type.Optional(
            Type.Array(BroadcastSection, {
              maxItems: limits.broadcast_destinations_max,
              description: `a list of at most ${limits.broadcast_destinations_max} destinations`,
            }),
          ),
        },
        { ...strict, description: 'an object with level, retention_days and broadcast' },
      ),
    ),
  },
  { ...strict, description: 'an object of sections' },
);
export type ConfigFile = Static<typeof ConfigFile>;
export type OcrSection = Static<typeof OcrSection>;
export type EngineSection = Static<typeof EngineSection>;
export type ProviderSection = Static<typeof ProviderSection>;
export type ModelSection = Static<typeof ModelSection>;
export type EndpointSection = Static<typeof EndpointSection>;
export type PricingSection = Static<typeof PricingSection>;
export type BroadcastSection = Static<typeof BroadcastSection>;
export type ProbesSection = NonNullable<ConfigFile['probes']>;
export type TimeoutsSection = Static<typeof TimeoutsSection>;
export type RateAmountsSection = Static<typeof RateAmountsSection>;
