import type { Config } from '../config.ts';
import { toUsd } from '../schemas/money.ts';
import type { RateAmounts, RateRules } from '../schemas/rate-limit.ts';

/** A group of settings, by name. */
interface Section {
  title: string;
  rows: (readonly [name: string, value: string])[];
}

/** The printable form of a configuration: of secrets, only whether they are set. */
export function describeConfig(config: Config): Section[] {
  return [
    { title: 'Settings', rows: shown(serviceSettings(config)) },
    { title: 'Timeouts', rows: shown(config.timeouts) },
    { title: 'Ledger', rows: shown({ ...config.ledger }) },
    { title: 'Retention', rows: shown({ ...config.retention }) },
    { title: 'Routing', rows: shown(routingSettings(config)) },
    { title: 'Guardrails', rows: shown(guardrails(config)) },
    { title: 'Plugins', rows: plugins(config.plugins) },
    { title: 'Logging', rows: shown(loggingSettings(config)) },
    { title: 'Rate limits', rows: rateLimits(config.rate_limits) },
  ];
}

type Setting = string | number | boolean | readonly (string | number)[] | undefined;

function shown(settings: Readonly<Record<string, Setting>>): Section['rows'] {
  return Object.entries(settings).map(([name, value]) => {
    const text = Array.isArray(value) ? value.join(', ') : String(value ?? '');
    return [name, text === '' ? 'none' : text] as const;
  });
}

function serviceSettings(config: Config): Record<string, Setting> {
  const presence = (value: string | undefined) => (value === undefined ? 'not set' : 'set');
  const { probes, metrics } = config;
  return {
    host: config.host,
    port: config.port,
    ...proxies(config),
    store: config.database_url === undefined ? 'embedded' : 'PostgreSQL',
    data_dir: config.data_dir,
    config_file: config.config_file,
    config_watch: config.config_watch ? 'on' : 'off',
    management_key: presence(config.management_key),
    first_key: config.first_keys.ordinary,
    print_keys: config.first_keys.are_printed ? 'on' : 'off',
    secret: presence(config.secret),
    metrics_token: presence(metrics.token),
    metrics_address: metrics.listen === undefined ? 'that of the API' : `${metrics.listen.host}:${metrics.listen.port}`,
    body_bytes_max: config.body_bytes_max,
    ...config.http,
    database_connections: config.database_connections,
    ...config.limits,
    log_level: config.log_level,
    default_model: config.default_model,
    console: config.console ? 'on' : 'off',
    sandbox: config.sandbox,
    bundled_catalog: config.bundled_catalog,
    models_declared: config.models.length,
    public_url: config.auth.public_origin,
    codes_by_api_key: config.codes_by_api_key ? 'on' : 'off',
    oidc_issuer: config.auth.issuer?.issuer,
    media_ports: config.media.ports,
    media_private_hosts: config.media.private_hosts,
    media_buckets: config.media.buckets,
    stored_responses: config.responses.store ? `for ${config.responses.retention_days} days` : 'off',
    reasoning_state: config.reasoning_state.keep,
    reasoning_state_hours: config.reasoning_state.hours,
    ...config.compatibility,
    probes:
      probes === null
        ? 'off'
        : `$${probes.usd_per_day} a day, of ${probes.models?.join(', ') ?? 'all models'} after ${probes.every_minutes} minutes without a call`,
  };
}

/** Without the passwords that the addresses may contain. */
function proxies({ proxies: rules }: Config): Record<string, Setting> {
  if (rules === undefined) return {};
  const host = (proxy: string | undefined) => (proxy === undefined ? undefined : new URL(proxy).host);
  const direct = rules.direct.map(({ host, port }) => (port === undefined ? host : `${host}:${port}`));
  return { http_proxy: host(rules.http), https_proxy: host(rules.https), no_proxy: direct };
}

function loggingSettings({ logging: { retention_days, broadcast } }: Config): Record<string, Setting> {
  const rows = broadcast.map(({ name, type, url, workspaces, include_content, share_bp }) => [
    `broadcast.${name}`,
    `${type} at ${new URL(url).origin}, ${share_bp / 100} % of ${workspaces?.join(', ') ?? 'every workspace that enables it'}` +
      (include_content ? ', with contents' : ''),
  ]);
  return { retention_days, ...Object.fromEntries(rows) };
}

function routingSettings({ routing: { users, hedge_share_max, ...settings } }: Config): Record<string, Setting> {
  return { ...settings, users: users.size, hedge_share: hedge_share_max };
}

function guardrails({ guardrails: { analyzer, ...settings } }: Config): Record<string, Setting> {
  const detector =
    analyzer === undefined
      ? 'this gateway'
      : `${URL.parse(analyzer.base_url)?.host ?? '?'}, ${analyzer.api_key === undefined ? 'without key' : 'with key'}, ${analyzer.language}, from a score of ${analyzer.score_min}`;
  return { ...settings, analyzer: detector };
}

function plugins({ web, file_parser: { ocr } }: Config['plugins']): Section['rows'] {
  const engines = [...web.engines].map(([engine, { base_url, api_key, price }]): Section['rows'][number] => {
    const key = api_key === undefined ? 'without key' : 'with key';
    const more =
      price.result_nano === 0 ? '' : `, $${toUsd(price.result_nano)} a result above ${price.results_included}`;
    return [
      `web.${engine}`,
      `${URL.parse(base_url)?.host ?? '?'}, ${key}, $${toUsd(price.search_nano)} a search${more}`,
    ];
  });
  const reader =
    ocr === undefined
      ? 'none'
      : `mistral-ocr at ${URL.parse(ocr.base_url)?.host ?? '?'}, ${ocr.api_key === undefined ? 'without key' : 'with key'}, $${toUsd(ocr.page_nano)} a page`;
  return [['web.engine', web.engine ?? 'none'], ...engines, ['file_parser.ocr', reader]];
}

function rateLimits(rules: RateRules): Section['rows'] {
  const { free_models: free } = rules;
  return [
    ['per_key', amounts(rules.per_key)],
    ['per_model', amounts(rules.per_model)],
    ['per_key_and_model', amounts(rules.per_key_and_model)],
    ...[...rules.keys].map(([key, rates]) => [`keys.${key}`, amounts(rates)] as const),
    ...[...rules.models].map(([model, rates]) => [`models.${model}`, amounts(rates)] as const),
    [
      'free_models',
      free === undefined
        ? 'off'
        : `${free.requests_per_minute} requests a minute, ${free.requests_per_day} a day, ` +
          `${free.requests_per_day_funded} a day with $${free.funded_usd} granted`,
    ],
    ['uncounted', rules.uncounted],
  ];
}

function amounts({ requests_per_minute, tokens_per_minute }: RateAmounts): string {
  const parts = [
    ...(requests_per_minute === undefined ? [] : [`${requests_per_minute} requests`]),
    ...(tokens_per_minute === undefined ? [] : [`${tokens_per_minute} tokens`]),
  ];
  return parts.length === 0 ? 'without bound' : `${parts.join(' and ')} a minute`;
}
