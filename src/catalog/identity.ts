import { lookupTable } from '../schemas/lookup-table.ts';

/**
 * Identifies the model of a provider's listing. A wrong match would serve and bill another model than the requested one, so two listings
 * are the same model only if their normalised names are equal, word for word.
 */

/** Names of organisations at hosts, with those of the public `author/slug` ids. */
const authors: Record<string, string> = lookupTable({
  alibaba: 'qwen',
  'deepseek-ai': 'deepseek',
  liquidai: 'liquid',
  meta: 'meta-llama',
  minimaxai: 'minimax',
  mistral: 'mistralai',
  moonshot: 'moonshotai',
  'stepfun-ai': 'stepfun',
  xai: 'x-ai',
  xiaomimimo: 'xiaomi',
  'zai-org': 'z-ai',
  zai: 'z-ai',
  zhipuai: 'z-ai',
});

/** The first words of a normalised name, with the maker that they imply if a host names none. */
const makers: [RegExp, string][] = [
  [/^(gpt|chatgpt|o \d|text embedding|whisper|codex)\b/, 'openai'],
  [/^claude\b/, 'anthropic'],
  [/^(gemini|gemma)\b/, 'google'],
  [/^llama\b/, 'meta-llama'],
  [/^phi\b/, 'microsoft'],
  [/^(mistral|ministral|mixtral|codestral|magistral|devstral|pixtral|voxtral)\b/, 'mistralai'],
  [/^(command|embed v|cohere|c 4 ai|north)\b/, 'cohere'],
  [/^grok\b/, 'x-ai'],
  [/^kimi\b/, 'moonshotai'],
  [/^deepseek\b/, 'deepseek'],
  [/^(qwen|qwq|qvq)\b/, 'qwen'],
  [/^glm\b/, 'z-ai'],
  [/^minimax\b/, 'minimax'],
  [/^nova\b/, 'amazon'],
  [/^nemotron\b/, 'nvidia'],
  [/^mimo\b/, 'xiaomi'],
  [/^step \d/, 'stepfun'],
  [/^sonar\b/, 'perplexity'],
  [/^cogito\b/, 'deepcogito'],
  [/^rnj\b/, 'essentialai'],
  [/^palmyra\b/, 'writer'],
  [/^bge\b/, 'baai'],
];

/** The organisation of an `author/slug` id in its public form. */
export function publicAuthor(organisation: string): string {
  const lower = organisation.toLowerCase();
  return authors[lower] ?? lower;
}

/** The maker of a model, by its normalised name; undefined if the name does not show it. */
export function makerOf(name: string): string | undefined {
  return makers.find(([pattern]) => pattern.test(name))?.[1];
}

/** The parts of a listing's id: path and vendor prefixes, and the bare name. */
export interface ListingId {
  /** The public author in the id's own path, if any. */
  author: string | undefined;
  /** The name without path, region, version and deployment suffixes. */
  bare: string;
  /** Bedrock's inference profile: `eu`, `us`, `global` … */
  region: string | undefined;
}

/** Parses a model's id in the formats of providers. */
export function readListingId(provider: string, id: string): ListingId {
  if (provider === 'amazon-bedrock') {
    // https://docs.aws.amazon.com/bedrock/latest/userguide/model-ids.html
    const match = /^(?:(us|eu|apac|au|jp|global|us-gov|ca)\.)?([a-z0-9]+)\.(.+?)(?:-v\d+:\d+|-v1|:\d+)?$/.exec(id);
    if (match) return { author: publicAuthor(match[2] ?? ''), bare: match[3] ?? id, region: match[1] };
  }
  let path = id;
  if (provider === 'fireworks') {
    path = id.replace(/^accounts\/[^/]+\/(models|routers)\//, '').replace(/(\d)p(\d)/g, '$1.$2');
  }
  if (provider === 'cloudflare') path = id.replace(/^@(cf|hf)\//, '');
  if (provider === 'google-vertex') path = id.replace(/@.*$/, '').replace(/-maas$/, '');
  const segments = path.split('/');
  const bare = segments.pop() ?? path;
  const organisation = segments.pop();
  return { author: organisation === undefined ? undefined : publicAuthor(organisation), bare, region: undefined };
}

/**
 * The words of a model's name, without what hosts add or leave out freely: `Meta-Llama-3.1-8B-Instruct` and
 * `llama3-1-8b` are both `llama 3 1 8 b`.
 */
export function normalise(name: string): string {
  let words = name
    .toLowerCase()
    .replace(/\(latest\)/g, ' ')
    .replace(/[^a-z0-9]+/g, ' ')
    .replace(/([a-z])(\d)/g, '$1 $2')
    .replace(/(\d)([a-z])/g, '$1 $2')
    .trim()
    .replace(
      /^(meta|nvidia|anthropic|openai|google|cohere|amazon|perplexity|z ai|zai|xiaomimimo|mistral ai|deepseek ai) (?=\S)/,
      '',
    );
  // `instruct` and `it` only distinguish tuned from raw weights, which no host serves; GPT-3.5 has an Instruct of its own.
  if (!/^gpt\b/.test(words)) words = words.replace(/ (instruct|it|hf)\b/g, '');
  return (
    words
      // Claude's ids may end in the day of their snapshot.
      .replace(/^(claude .*?) 20\d{6}$/, '$1')
      .replace(/^claude (\d)( \d)? (sonnet|opus|haiku)\b/, 'claude $3 $1$2')
      // Llama 4's experts are part of some names and not of others; each name has one size only.
      .replace(/^llama 4 (maverick|scout) 17 b( \d+ e)?/, 'llama 4 $1')
      .replace(/^nova (.+) v 1$/, 'nova $1')
      .replace(/^deepseek chat v /, 'deepseek v ')
      .replace(/^(r 1 \d{4}|r 1 distill)/, 'deepseek $1')
      .replace(/\s+/g, ' ')
      .trim()
  );
}

/**
 * Normalised names of models with another public id, where no rule applies. Sources: the model pages of
 * https://docs.mistral.ai/getting-started/models and the model cards on https://huggingface.co.
 */
export const otherNames: Readonly<Record<string, string>> = lookupTable({
  'devstral 2 123 b': 'mistralai/devstral-2512',
  'l 3 8 b lunaris': 'sao10k/l3-lunaris-8b',
  'l 31 70 b euryale v 2 2': 'sao10k/l3.1-euryale-70b',
  'ministral 3 14 b': 'mistralai/ministral-14b-2512',
  'ministral 3 3 b': 'mistralai/ministral-3b-2512',
  'ministral 3 8 b': 'mistralai/ministral-8b-2512',
  'mistral medium 3 5 128 b': 'mistralai/mistral-medium-3-5',
  'mistral nemo 2407': 'mistralai/mistral-nemo',
  'mistral small 2503': 'mistralai/mistral-small-3.1-24b-instruct',
  'mistral small 2506': 'mistralai/mistral-small-3.2-24b-instruct',
  'mistral small 3 2 24 b 2506': 'mistralai/mistral-small-3.2-24b-instruct',
});

const numberFormats = new Set(['fp 8', 'fp 4', 'bf 16', 'fp 16', 'int 8', 'int 4', 'nvfp 4']);
const hostVariants = new Set(['turbo', 'fast', 'tput', 'tee', 'lite', 'highspeed', 'versatile', 'instant']);

/** Splits one host-specific suffix (`turbo`, `fp8`) off a normalised name; undefined if there is none. */
export function splitVariant(name: string): { name: string; variant: string; quantization?: string } | undefined {
  const words = name.split(' ');
  const two = words.slice(-2).join(' ');
  if (words.length > 2 && numberFormats.has(two)) {
    const format = two.replace(' ', '');
    return { name: words.slice(0, -2).join(' '), variant: format, quantization: format === 'nvfp4' ? 'fp4' : format };
  }
  const last = words.at(-1) ?? '';
  return words.length > 1 && hostVariants.has(last) ? { name: words.slice(0, -1).join(' '), variant: last } : undefined;
}
