import Type from 'typebox';
import { limits } from '../../limits.ts';
import { searchEngines } from '../../schemas/web-search.ts';
import { byName, group, required, section, setting } from './declare.ts';
import {
  address,
  count,
  flag,
  fraction,
  integer,
  key,
  list,
  names,
  oneOf,
  pattern,
  strict,
  text,
  unitPrice,
  usd,
} from './values.ts';

/** Settings of how calls of models are served. */

const rate = Type.Union([count, Type.Literal('unlimited')], {
  description: 'a whole number of 1 or more, or unlimited',
});
const amounts = {
  requests_per_minute: setting(rate, { sentence: 'requests a minute', defaultText: 'no limit' }),
  tokens_per_minute: setting(rate, { sentence: 'tokens a minute', defaultText: 'no limit' }),
};
export const rateAmounts = group(amounts, { sentence: 'limits of requests and tokens' });

export const rateLimits = section(
  {
    per_key: group(amounts, { sentence: 'for each key', defaultText: 'no limit' }),
    per_model: group(amounts, { sentence: 'for each model, all keys together', defaultText: 'no limit' }),
    per_key_and_model: group(amounts, { sentence: 'for each key at each model', defaultText: 'no limit' }),
    keys: byName(rateAmounts, 'hash or name', {
      description: 'an object of limits by the hash or name of a key',
      sentence: 'replaces `per_key` for single keys',
    }),
    models: byName(rateAmounts, 'id or pattern', {
      description: 'an object of limits by the id of a model, or a pattern',
      sentence: 'replaces `per_model` for models; the longest matching pattern counts',
    }),
    free_models: setting(
      Type.Union(
        [
          Type.Literal('off'),
          Type.Object(
            {
              requests_per_minute: Type.Optional(count),
              requests_per_day: Type.Optional(count),
              requests_per_day_funded: Type.Optional(count),
              funded_usd: Type.Optional(usd(limits.usd_max)),
            },
            strict,
          ),
        ],
        {
          description:
            'off, or an object with requests_per_minute, requests_per_day, requests_per_day_funded and funded_usd',
        },
      ),
      {
        sentence: 'limits of `:free` variants for each organization; `off` treats them like other models',
        defaultText:
          `${limits.free_requests_per_minute} a minute, ${limits.free_requests_per_day} a day, ` +
          `${limits.free_requests_per_day_funded} a day with ${limits.free_funded_usd} USD granted`,
      },
    ),
    uncounted: setting(oneOf(['refuse', 'allow']), {
      sentence: 'what happens to requests while the store does not answer',
      default: 'refuse',
    }),
  },
  { sentence: 'see [Rate limits](rate-limits.md)', takesEffect: 'at once' },
);

/** An analyzer with the API of Presidio. */
export const analyzer = group(
  {
    url: required(address, { sentence: 'its address' }),
    api_key: setting(key, { sentence: 'its credential', isSecret: true }),
    language: setting(text('a language code of the analyzer, such as en'), {
      sentence: 'the language of the texts',
      default: 'en',
    }),
    score_min: setting(fraction, { sentence: 'results with a lower score are ignored', default: 0.5 }),
  },
  {
    sentence: "an analyzer with Presidio's API, in place of the gateway's own search for names and addresses",
    defaultText: "the gateway's own search",
  },
);

export const guardrails = section(
  {
    on_failure: setting(oneOf(['block', 'allow']), {
      sentence: 'what to do with a request if a filter cannot be applied',
      default: 'block',
    }),
    timeout_ms: setting(
      integer(1, limits.analysis_ms_max, `a whole number of milliseconds from 1 to ${limits.analysis_ms_max}`),
      { sentence: 'for the search of names and addresses in one request', default: limits.analysis_ms },
    ),
    phone_regions: setting(
      list(
        pattern('^[A-Z]{2}$', 'a country code of two capital letters (ISO 3166)'),
        `a list of at most ${limits.phone_regions_max} countries (ISO 3166)`,
        { minItems: 1, maxItems: limits.phone_regions_max, uniqueItems: true },
      ),
      {
        sentence: 'countries whose national telephone numbers are recognized; international numbers (+…) always are',
        // The same array for every reader: filters are made once for each array.
        default: ['US'],
      },
    ),
    analyzer,
  },
  { sentence: 'see [Guardrails](guardrails.md)', takesEffect: 'at once' },
);

const sorts = ['price', 'throughput', 'latency', 'exacto'] as const;
const routerModels = list(text(), `a list of 1 to ${limits.router_models_max} model ids`, {
  minItems: 1,
  maxItems: limits.router_models_max,
});
const userDefaults = group(
  {
    default_text_model: setting(text('the id of a model'), { sentence: 'the model of requests that name none' }),
    default_provider_sort: setting(oneOf(sorts), { sentence: 'the order of endpoints, if the request has none' }),
  },
  { sentence: 'defaults of a user' },
);

export const routing = section(
  {
    continuation: setting(flag, {
      sentence: 'whether another endpoint continues streams that break off; a request can override it',
      default: false,
    }),
    hedge: setting(flag, {
      sentence: 'whether streams that start late are also requested from a second endpoint; a request can override it',
      default: false,
    }),
    hedge_share: setting(fraction, {
      sentence: 'the largest share of calls that are hedged',
      default: limits.hedge_share_max,
    }),
    auto_models: setting(routerModels, {
      sentence: 'the models of `gateway/auto`, best first',
      defaultText: 'there is no such router',
    }),
    free_models: setting(
      Type.Union([Type.Literal('all'), routerModels], { description: 'all, or a list of model ids' }),
      {
        sentence: 'the models of `gateway/free`: all models that cost nothing, or a list',
        defaultText: 'there is no such router',
      },
    ),
    users: byName(userDefaults, 'user id', {
      description: 'an object of defaults by the id of a user',
      sentence: 'defaults of users',
    }),
  },
  { sentence: 'see [Routing](routing.md)', takesEffect: 'at once' },
);

export const compatibility = section(
  {
    endpoint_status: setting(oneOf(['string', 'integer']), {
      sentence:
        "`integer`: `status` of endpoints as a number, as [OpenRouter's TypeScript SDK](clients.md#openrouter-sdks) expects it",
      default: 'string',
    }),
    sampler_off_values: setting(oneOf(['refuse', 'ignore']), {
      sentence:
        '`ignore`: `top_k` 0 or -1, `top_p` 0 and `repetition_penalty` 0 [count as absent](clients.md#values-that-the-api-does-not-have)',
      default: 'refuse',
    }),
  },
  { sentence: 'see [Clients](clients.md)', takesEffect: 'at once' },
);

export const media = section(
  {
    private_hosts: setting(
      list(pattern('^[^\\s/@?#]+$', 'a host, or host:port, without a scheme or a path'), 'a list of hosts'),
      { sentence: 'exact hosts of your own network that requests may link to', default: [] },
    ),
    ports: setting(list(integer(1, 65_535, 'the number of a port'), 'a list of ports', { minItems: 1 }), {
      sentence: 'ports that requests may link to',
      default: [80, 443],
    }),
    buckets: setting(
      list(
        pattern('^(s3|gs)://[A-Za-z0-9][A-Za-z0-9._-]*$', 'a bucket such as s3://media or gs://media'),
        'a list of buckets',
      ),
      {
        sentence: 'buckets that requests may link to; providers read them with your credential',
        default: [],
      },
    ),
  },
  {
    sentence:
      'files that requests link to: the gateway fetches them for local and declared servers; see [Providers](providers.md#addresses-of-images-and-files)',
    takesEffect: 'at the next start',
  },
);

export const responses = section(
  {
    store: setting(flag, { sentence: 'whether responses are stored whose requests say so', default: false }),
    retention_days: setting(integer(1, 3_650, 'a number of days, at most ten years'), {
      sentence: 'how long they are stored',
      default: limits.stored_response_days,
    }),
  },
  {
    sentence: 'see [Stored responses](clients.md#stored-responses-and-previous_response_id)',
    takesEffect: 'at the next start',
  },
);

export const reasoningState = section(
  {
    keep: setting(oneOf(['store', 'memory', 'off']), {
      sentence: '`store`: encrypted, for all nodes; `memory`: per process',
      default: 'store',
    }),
    hours: setting(integer(1, 8_760, 'a number of hours, at most a year'), {
      sentence: 'how long they are kept',
      default: limits.turn_state_hours,
    }),
  },
  {
    sentence:
      'parts of turns with tool calls that chat clients do not send back: signatures of reasoning, the order of blocks',
    takesEffect: 'at the next start',
  },
);

export const probes = section(
  {
    usd_per_day: required(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: limits.usd_max,
        description: `an amount of USD above 0, at most ${limits.usd_max}`,
      }),
      { sentence: 'what probes may cost, for all nodes together; never exceeded' },
    ),
    every_minutes: setting(integer(1, 1_440, 'a number of minutes, at most a day'), {
      sentence: 'endpoints without a call for this time are probed',
      default: limits.probes_every_minutes,
    }),
    models: setting(names('a list of ids of models'), { sentence: 'the models that are probed', defaultText: 'all' }),
  },
  {
    sentence: 'off if the section is absent; see [Endpoint health](endpoint-health.md)',
    takesEffect: 'at the next start',
  },
);

/** Engines that are a service have a key, the operator's own have an address. */
export const searchEngine = group(
  {
    api_key: setting(key, { sentence: 'the credential', isSecret: true }),
    base_url: setting(address, { sentence: 'the address of its API', defaultText: "the service's" }),
    url: setting(address, { sentence: 'the same, for SearXNG' }),
    price_per_search_usd: setting(unitPrice, { sentence: 'what a search costs', defaultText: 'the list price' }),
  },
  { description: 'an object with api_key, base_url (or url) and price_per_search_usd', sentence: 'a search engine' },
);
const engineNamed = (variable: string) => ({
  ...searchEngine,
  sentence: `\`${variable}\` turns it on without this section`,
});

export const ocr = group(
  {
    engine: required(oneOf(['mistral-ocr']), { sentence: "Mistral's API, or another service with the same API" }),
    api_key: setting(key, { sentence: 'the credential', defaultText: '`MISTRAL_API_KEY`', isSecret: true }),
    base_url: setting(address, { sentence: 'the address of another service', defaultText: "Mistral's" }),
    model: setting(text(), { sentence: 'the model', defaultText: '`mistral-ocr-latest`' }),
    price_per_page_usd: setting(unitPrice, {
      sentence: 'what a page costs',
      defaultText: "Mistral's list price, 0.002",
    }),
  },
  {
    sentence: 'reads PDF pages that are images, for requests that ask for it',
    defaultText: 'off',
  },
);

export const plugins = section(
  {
    file_parser: group({ ocr }, { sentence: 'the plugin that reads files' }),
    web: group(
      {
        engine: setting(oneOf(searchEngines), {
          sentence: 'the engine that is used if several are configured',
          defaultText: `the first of ${searchEngines.join(', ')}`,
        }),
        engines: group(
          {
            exa: engineNamed('EXA_API_KEY'),
            firecrawl: engineNamed('FIRECRAWL_API_KEY'),
            parallel: engineNamed('PARALLEL_API_KEY'),
            searxng: engineNamed('SEARXNG_URL'),
          },
          {
            description: `an object of search engines: ${searchEngines.join(', ')}`,
            sentence: 'the search engines',
          },
        ),
      },
      { sentence: 'web search; see [Web search](web-search.md)' },
    ),
  },
  { sentence: 'see [Plugins](plugins.md)', takesEffect: 'at once' },
);
