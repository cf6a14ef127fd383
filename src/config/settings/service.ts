import Type from 'typebox';
import { limits } from '../../limits.ts';
import { group, listOfGroups, required, section, setting } from './declare.ts';
import {
  address,
  count,
  flag,
  headers,
  httpAddress,
  integer,
  list,
  milliseconds,
  names,
  number,
  oneOf,
  pattern,
  secret,
  text,
} from './values.ts';

/** Settings of the process, its store and its listener. */

const timeout = (sentence: string, millisecondsDefault: number) =>
  setting(milliseconds, { sentence, default: millisecondsDefault });

export const timeouts = section(
  {
    upstream_connect_ms_max: timeout('the longest time to connect to a provider', limits.upstream_connect_ms_max),
    upstream_headers_ms_max: timeout(
      "the longest time until the headers of a provider's answer",
      limits.upstream_headers_ms_max,
    ),
    upstream_first_token_ms_max: timeout(
      'the longest time until the first token of an answer',
      limits.upstream_first_token_ms_max,
    ),
    upstream_idle_ms_max: timeout('the longest silence within an answer', limits.upstream_idle_ms_max),
    upstream_total_ms_max: timeout('the longest time of a whole attempt', limits.upstream_total_ms_max),
    heartbeat_first_ms: timeout('the silence after which a stream gets its first heartbeat', limits.heartbeat_first_ms),
    heartbeat_ms: timeout('the time between further heartbeats', limits.heartbeat_ms),
    shutdown_grace_ms: setting(
      integer(
        0,
        limits.shutdown_grace_setting_ms_max,
        `a whole number of milliseconds from 0 to ${limits.shutdown_grace_setting_ms_max}`,
      ),
      {
        sentence: 'how long a node serves after `SIGTERM`, not ready, before it drains',
        defaultText: `0; under an orchestrator (Kubernetes, Nomad, Amazon ECS) ${limits.shutdown_grace_ms}`,
      },
    ),
    shutdown_ms_max: timeout('the time that running requests have to finish after `SIGTERM`', limits.shutdown_ms_max),
  },
  {
    description: 'an object of limits in milliseconds',
    sentence: 'all in milliseconds; see [Operation](operation.md)',
    takesEffect: 'at the next start',
  },
);

export const ledger = section(
  {
    journal_sync: setting(oneOf(['group', 'os']), {
      sentence: '`group` survives a power loss; `os` survives `kill -9`, but not a power loss',
      default: 'group',
    }),
    journal_keep_hours: setting(
      number(0, limits.journal_keep_hours_max, `a number of hours from 0 to ${limits.journal_keep_hours_max}`),
      {
        sentence:
          'how long a node keeps entries that the store has, in case the store is [restored from a backup](operation.md#backup-and-restore)',
        default: limits.journal_keep_ms / 3_600_000,
      },
    ),
    journal_keep_bytes: setting(integer(0, Number.MAX_SAFE_INTEGER, 'a whole number of bytes of 0 or more'), {
      sentence: 'the most that each process keeps of them',
      default: limits.journal_keep_bytes_max,
    }),
    lost_node_release_after: setting(integer(1, 31_536_000, 'a whole number of seconds, at most a year'), {
      sentence: 'the seconds after which money that a lost node has reserved is booked as spent',
      defaultText: 'an operator releases it',
    }),
    unknown_price: setting(oneOf(['refuse', 'allow']), {
      sentence:
        '`allow`: models without a known price can be called; the known part of the price is charged, and no cost is reported',
      default: 'refuse',
    }),
    budgets: setting(oneOf(['strict', 'soft']), {
      sentence: '`strict`: charges never exceed a limit; `soft`: an estimate is reserved in place of the worst case',
      default: 'strict',
    }),
    hold: setting(oneOf(['full', 'sliced']), {
      sentence: '`sliced` (`soft` only): the estimate is reserved a part at a time',
      default: 'full',
    }),
    unknown_outcome: setting(oneOf(['hold', 'metered']), {
      sentence: 'the charge of an attempt whose end is unknown: the reserved amount, or (`soft` only) the metered cost',
      default: 'hold',
    }),
    default_output_tokens: setting(count, {
      sentence: 'the output bound of requests under a limit without `max_tokens`',
      defaultText: "the model's maximum, up to what a quarter of the rest of the limit pays for",
    }),
    min_output_tokens: setting(count, {
      sentence: 'spend limits do not lower an output bound below this',
      default: limits.output_tokens_min,
    }),
    on_store_outage: group(
      {
        serve_for: required(
          integer(
            1,
            limits.serve_without_store_seconds_max,
            `a whole number of seconds from 1 to ${limits.serve_without_store_seconds_max}`,
          ),
          { sentence: 'for how many seconds known keys are served' },
        ),
      },
      {
        sentence:
          'serves while PostgreSQL does not answer; see [Operation](operation.md#when-postgresql-does-not-answer)',
        defaultText: 'requests get a 503',
      },
    ),
  },
  { sentence: 'see [Spend limits](spend-limits.md)', takesEffect: 'at the next start' },
);

const daysKept = (least: number, sentence: string) =>
  setting(
    integer(least, limits.retention_days_max, `a whole number of days from ${least} to ${limits.retention_days_max}`),
    { sentence, defaultText: 'kept for ever' },
  );

export const retention = section(
  {
    generations_days: daysKept(
      limits.generations_days_min,
      'how long the records of calls are kept; sums of usage and the ledger keep counting deleted calls',
    ),
    closed_windows_days: daysKept(
      limits.generations_days_min,
      'how long the state of limits is kept after the day, week or month has ended; at least `generations_days`, which it requires',
    ),
    audit_days: daysKept(limits.audit_days_min, 'how long audit records are kept'),
  },
  { sentence: 'see [Delete old data](operation.md#delete-old-data)', takesEffect: 'at once' },
);

export const database = section(
  {
    connections: setting(integer(limits.database_connections_min, limits.database_connections_max), {
      sentence: 'to PostgreSQL, per process, plus one for notifications',
      default: limits.database_connections,
      field: 'database_connections',
    }),
  },
  { sentence: 'see [Operation](operation.md)', takesEffect: 'at the next start' },
);

export const oidc = group(
  {
    issuer: required(text('the URL of an OpenID Connect issuer'), { sentence: 'the URL of the issuer' }),
    client_id: required(text(), { sentence: 'the id of the gateway at the issuer' }),
    client_secret: setting(secret, {
      sentence: 'its secret there; leave it out for a public client',
      isSecret: true,
    }),
    scopes: setting(names('a list of scopes'), {
      sentence: 'must include `openid`',
      default: ['openid', 'profile', 'email'],
    }),
    provision: setting(oneOf(['admin', 'member', 'none']), {
      sentence: 'the role of people who sign in for the first time; `none`: they are refused',
      default: 'none',
    }),
    allowed_email_domains: setting(
      list(pattern('^[^@\\s]+$', 'a domain such as example.com'), 'a list of domains', { minItems: 1 }),
      { sentence: 'whose addresses may sign in', defaultText: 'any' },
    ),
  },
  {
    description: 'an object with issuer and client_id',
    sentence: 'any OpenID Connect issuer; its redirect URI is `<public_url>/sign-in/issuer/callback`',
    defaultText: 'off',
  },
);

export const auth = section(
  {
    public_url: setting(address, {
      sentence: 'the address that browsers use; required behind a proxy with TLS, and for `oidc`',
    }),
    codes_by_api_key: setting(oneOf(['on', 'off']), {
      sentence: '`off`: only signed-in members can approve keys for applications',
      default: 'on',
      takesEffect: 'at once',
      field: 'codes_by_api_key',
    }),
    oidc,
  },
  {
    sentence: 'sign-in, and keys for applications; see [Keys for applications](keys-for-applications.md)',
    takesEffect: 'at the next start',
  },
);

const connections = integer(1, limits.connections_setting_max);

export const http = section(
  {
    trusted_proxies: setting(
      list(
        text('an IP address, or a range such as 10.0.0.0/8'),
        `a list of at most ${limits.trusted_proxies_max} IP addresses and ranges`,
        { maxItems: limits.trusted_proxies_max },
      ),
      { sentence: 'your proxies, whose `X-Forwarded-For` is used', default: [] },
    ),
    connections_max: setting(connections, {
      sentence: 'connections of clients per process',
      defaultText: `${limits.connections_max}, or less if the limit of open files (\`ulimit -n\`) is low`,
    }),
    connections_per_address_max: setting(connections, {
      sentence: 'connections per address (IPv6: per /64 network); trusted proxies are not counted',
      defaultText: 'a quarter of `connections_max`',
    }),
  },
  { sentence: 'see [Operation](operation.md)', takesEffect: 'at the next start' },
);

export const metrics = section(
  {
    token: setting(secret, {
      sentence: `the bearer token of the scraper, ${limits.management_key_chars_min} characters or more; also \`GATEWAY_METRICS_TOKEN\``,
      defaultText: 'everybody may read them',
      isSecret: true,
    }),
    host: setting(text('a host name or an IP address'), {
      sentence: 'the address of the separate port',
      defaultText: '`GATEWAY_HOST`',
    }),
    port: setting(integer(1, 65_535), { sentence: 'a separate port', defaultText: 'the port of the API' }),
  },
  {
    sentence: 'see [Operation](operation.md#health-metrics-and-logs)',
    takesEffect: 'at the next start',
  },
);

export const processLimits = section(
  {
    management_requests_per_minute: setting(count, {
      sentence: 'requests per management key or session; above it: 429',
      default: limits.management_requests_per_minute,
    }),
    memory_bytes: setting(
      integer(
        limits.memory_bytes_setting_min,
        limits.memory_bytes_setting_max,
        `a whole number of bytes from ${limits.memory_bytes_setting_min} to ${limits.memory_bytes_setting_max}`,
      ),
      {
        sentence: 'memory per process for requests, files and answers together',
        defaultText: 'half of the heap limit',
      },
    ),
  },
  { sentence: 'see [Operation](operation.md)', takesEffect: 'at the next start' },
);

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const broadcastDestination = group(
  {
    type: required(oneOf(['otel-collector', 'webhook']), {
      sentence: '`otel-collector` (OTLP/HTTP), or `webhook`: the same body as a POST',
    }),
    url: required(httpAddress, {
      sentence: 'the address; for `otel-collector`, `/v1/traces` is appended if it has no path',
    }),
    name: setting(text(), { sentence: 'its name in metrics and in the log', defaultText: 'its type and place' }),
    headers: setting(headers, { sentence: 'headers that are sent; values may refer to variables', isSecret: true }),
    secret: setting(secret, {
      sentence: 'signs each request; see [Logging](logging.md#broadcast-calls-to-opentelemetry-or-a-webhook)',
      isSecret: true,
    }),
    workspaces: setting(names('a list of ids or slugs of workspaces'), {
      sentence: 'whose calls are sent',
      defaultText: 'all workspaces that enable broadcast',
    }),
    include_content: setting(flag, {
      sentence: 'also sends messages and answers of requests whose content is kept',
      default: false,
    }),
    sampling_rate: setting(number(0.0001, 1), {
      sentence: 'the share of conversations (`session_id`), or of calls without one',
      default: 1,
    }),
  },
  { description: 'an object with type and url', sentence: 'a destination' },
);

export const logging = section(
  {
    level: setting(oneOf(logLevels), {
      sentence: 'the least level of log lines; `GATEWAY_LOG_LEVEL` has precedence',
      default: 'info',
      field: 'log_level',
    }),
    retention_days: setting(integer(1, limits.logged_content_days_max, 'a whole number of days, at most ten years'), {
      sentence: 'how long requests and answers are kept, for workspaces that enable it',
      default: limits.logged_content_days,
    }),
    broadcast: listOfGroups(broadcastDestination, {
      description: `a list of at most ${limits.broadcast_destinations_max} destinations`,
      maxItems: limits.broadcast_destinations_max,
      sentence: 'where calls are sent, for workspaces that enable it',
      defaultText: 'none',
    }),
  },
  { sentence: 'see [Logging](logging.md)', takesEffect: 'at the next start' },
);

export const bundledCatalog = setting(Type.Boolean({ description: 'true or false' }), {
  sentence: 'whether the bundled models and prices are used',
  default: true,
  takesEffect: 'at once',
});
