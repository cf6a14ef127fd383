import Type from 'typebox';
import { embeddingWires } from '../../providers/embeddings/dialect.ts';
import { transcriptionWires } from '../../providers/transcription/dialect.ts';
import { wires } from '../../schemas/inner.ts';
import { byName, group, setting } from './declare.ts';
import { quirks } from './quirks.ts';
import { address, flag, headers, key, oneOf, pattern, text } from './values.ts';

const dataPolicy = group(
  {
    training: setting(
      Type.Union([Type.Boolean(), Type.Literal('unknown')], { description: 'true, false or unknown' }),
      {
        sentence: 'whether the provider trains on the data that callers send',
      },
    ),
    retention: setting(pattern('^(none|unknown|[1-9]\\d{0,4}d)$', 'none, unknown or a number of days such as 30d'), {
      sentence: 'how long the provider keeps that data',
    }),
  },
  {
    sentence: 'what the provider does with data; see [Providers](providers.md#what-providers-do-with-your-data)',
    defaultText: 'what a bundled provider publishes, otherwise unknown',
  },
);

export const provider = group(
  {
    name: setting(text(), { sentence: 'the display name', defaultText: 'the slug' }),
    dialect: setting(oneOf(wires), {
      sentence: "the provider's API for chat; required for a provider that is not bundled",
    }),
    embeddings_dialect: setting(oneOf(embeddingWires), { sentence: "the provider's API for embeddings" }),
    transcription_dialect: setting(oneOf(transcriptionWires), { sentence: "the provider's API for speech to text" }),
    base_url: setting(address, {
      sentence:
        "the address of the provider's API, to which the dialect appends `/chat/completions`, `/responses`, `/messages` and so on; required for a provider that is not bundled",
    }),
    api_key: setting(key, { sentence: 'the credential; leave it out for a server without one', isSecret: true }),
    headers: setting(headers, {
      sentence: 'headers that are sent with every request; values may refer to variables',
      isSecret: true,
    }),
    quirks: setting(quirks, {
      sentence: 'differences of its API: the options of [`src/providers/provider.ts`](../../src/providers/provider.ts)',
    }),
    variants: setting(Type.Array(text(), { description: 'a list of variants of models' }), {
      sentence: 'which of the bundled variants of models are offered, such as regions',
      defaultText: 'those that the credential can call',
    }),
    abort_stops_billing: setting(flag, {
      sentence: 'whether the provider stops billing when the connection is closed',
      defaultText: '`true` for a provider that is not bundled',
    }),
    attempts_url: setting(address, {
      sentence: 'an address that reports the outcome of an attempt; only the sandbox has this',
    }),
    data_policy: dataPolicy,
  },
  { description: 'an object that describes a provider', sentence: 'a provider' },
);

export const providers = byName(provider, 'slug', {
  description: 'an object of providers by slug',
  sentence: 'providers that are declared, and changes of bundled ones; see [Providers](providers.md)',
  takesEffect: 'at once',
});
