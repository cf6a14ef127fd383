import { limits } from '../../limits.ts';
import { logLevels } from './service.ts';

/**
 * The environment variables of the gateway itself, declared once: what the code reads, the README's table, the warning for unknown
 * names and the `_FILE` variants of secrets come from here. Those of providers are in `providers/table.ts`.
 */

interface Facts {
  /** What the variable is for, in Markdown, without a full stop. */
  sentence: string;
  /** The default in words, for the README, if `default` is not set or says too little. */
  defaultText?: string;
  /** The field of `Config` that holds it. */
  field: string;
}

/** A declared variable: `type` says which values it takes. */
export type Variable = Facts &
  (
    | { type: 'text'; default?: string }
    | { type: 'integer'; min: number; max: number; default: number }
    | { type: 'choice'; values: readonly string[]; default?: string }
    /** An amount of USD. */
    | { type: 'usd' }
    /** `NAME_FILE` may name a file that holds it. */
    | { type: 'secret'; isSentInHeader: boolean }
  );

export const variables = {
  GATEWAY_HOST: {
    type: 'text',
    default: '127.0.0.1',
    sentence: 'the address to listen on; `localhost` is both 127.0.0.1 and ::1',
    field: 'host',
  },
  GATEWAY_PORT: {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: 8080,
    sentence: 'the port to listen on; 0 chooses a free one',
    field: 'port',
  },
  GATEWAY_DATA_DIR: {
    type: 'text',
    default: './data',
    sentence: 'the directory of the embedded store and the journal',
    field: 'data_dir',
  },
  DATABASE_URL: {
    type: 'text',
    sentence: 'a PostgreSQL database instead of the embedded store',
    field: 'database_url',
  },
  DATABASE_LISTEN_URL: {
    type: 'text',
    sentence: 'the PostgreSQL server itself, if `DATABASE_URL` is a connection pooler',
    defaultText: '`DATABASE_URL`',
    field: 'listen_url',
  },
  GATEWAY_CONFIG: {
    type: 'text',
    sentence: 'the configuration file',
    defaultText: '`./gateway.yaml` if present',
    field: 'config_file',
  },
  GATEWAY_CONFIG_WATCH: {
    type: 'choice',
    values: ['on', 'off'],
    default: 'on',
    sentence: '`on`: read the file again when it changes; `off`: only at `SIGHUP`',
    field: 'config_watch',
  },
  GATEWAY_MANAGEMENT_KEY: {
    type: 'secret',
    isSentInHeader: true,
    sentence: `your own management key (${limits.management_key_chars_min} characters or more) instead of a generated one`,
    field: 'management_key',
  },
  GATEWAY_FIRST_KEY: {
    type: 'choice',
    values: ['auto', 'on', 'off'],
    default: 'auto',
    sentence:
      'whether the first start makes an API key `default`: `auto` (if it generates a management key), `on`, `off`',
    field: 'first_keys',
  },
  GATEWAY_FIRST_KEY_LIMIT: { type: 'usd', sentence: 'the spend limit of that key, in USD', field: 'first_keys' },
  GATEWAY_PRINT_KEYS: {
    type: 'choice',
    values: ['on', 'off'],
    default: 'on',
    sentence: '`off`: write the first keys to `first-keys.env` in the data directory',
    field: 'first_keys',
  },
  GATEWAY_SECRET: {
    type: 'secret',
    isSentInHeader: false,
    sentence: `the secret that encrypts stored credentials (${limits.management_key_chars_min} characters or more)`,
    defaultText: 'a file in the data directory',
    field: 'secret',
  },
  GATEWAY_METRICS_TOKEN: {
    type: 'secret',
    isSentInHeader: true,
    sentence: `the bearer token that \`GET /metrics\` requires (${limits.management_key_chars_min} characters or more)`,
    defaultText: '– (open)',
    field: 'metrics',
  },
  GATEWAY_BODY_BYTES_MAX: {
    type: 'integer',
    min: 1024,
    max: limits.body_bytes_setting_max,
    default: limits.body_bytes_max,
    sentence: 'the largest request body, in bytes',
    defaultText: '64 MiB',
    field: 'body_bytes_max',
  },
  GATEWAY_DEFAULT_MODEL: { type: 'text', sentence: 'the model of requests that name none', field: 'default_model' },
  GATEWAY_LOG_LEVEL: {
    type: 'choice',
    values: logLevels,
    sentence: '`fatal` … `trace`, `silent`',
    // The default is that of `logging.level`.
    defaultText: '`info`',
    field: 'log_level',
  },
  GATEWAY_CONSOLE: {
    type: 'choice',
    values: ['on', 'off'],
    default: 'on',
    sentence: '`on`: serve the [console](docs/guides/console.md) at `/`; `off`: a plain page with links',
    field: 'console',
  },
  GATEWAY_SANDBOX: {
    type: 'choice',
    values: ['auto', 'on', 'off'],
    default: 'auto',
    sentence: '`auto` (on if no provider is on), `on`, `off`',
    field: 'sandbox',
  },
} as const satisfies Readonly<Record<string, Variable>>;

export type VariableName = keyof typeof variables;
