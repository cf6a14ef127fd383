import type { PresidioSettings } from '../schemas/presidio.ts';
import { type Environment, expand } from './providers.ts';
import type { Path, ReadFile } from './read-file.ts';
import { analyzer as analyzerSection, guardrails } from './settings/calls.ts';
import { type Filled, filled } from './settings/declare.ts';

/** How filters of content are applied: the declared settings of `guardrails`. */
export interface GuardrailsConfig extends Omit<Filled<typeof guardrails.settings>, 'analyzer'> {
  /** The operator's analyzer with Presidio's API; undefined if the gateway itself searches for names and addresses. */
  analyzer: PresidioSettings | undefined;
}

/** The index of the first unknown country, or -1. The names of countries take 8 MB, so they are loaded only if the file names some. */
function unknownCountry(regions: readonly string[]): number {
  const countries = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'none' });
  return regions.findIndex((region) => countries.of(region) === undefined);
}

/** Reads the section `guardrails`. */
export function readGuardrails(environment: Environment, file: ReadFile | undefined): GuardrailsConfig {
  const settings = filled(guardrails, file?.value.guardrails);
  const unknown = file?.value.guardrails?.phone_regions === undefined ? -1 : unknownCountry(settings.phone_regions);
  if (file !== undefined && unknown !== -1) {
    throw file.wrong(['guardrails', 'phone_regions', unknown], 'is not a country code of ISO 3166');
  }
  const analyzer = file === undefined ? undefined : analyzerSettings(environment, file);
  return { ...settings, analyzer };
}

function analyzerSettings(environment: Environment, file: ReadFile): PresidioSettings | undefined {
  const section = file.value.guardrails?.analyzer;
  if (section === undefined) return undefined;
  const { language, score_min } = filled(analyzerSection, section);
  const place: Path = ['guardrails', 'analyzer'];
  const expanded = (field: 'url' | 'api_key'): string | undefined => {
    const value = section[field];
    if (value === undefined) return undefined;
    const { text, unset } = expand(value, environment);
    // Without its analyzer the gateway would find less than the operator expects.
    if (unset !== undefined) throw file.wrong([...place, field], `names ${unset}, which is not set`);
    return text;
  };
  const url = URL.parse(expanded('url') ?? '');
  const isPlain =
    url !== null && /^https?:$/.test(url.protocol) && url.username + url.password + url.search + url.hash === '';
  if (!isPlain) {
    throw file.wrong(
      [...place, 'url'],
      'must be a URL that starts with http:// or https://, without user, query or fragment',
    );
  }
  const apiKey = expanded('api_key');
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw file.wrong([...place, 'api_key'], 'must be plain ASCII without white space, because it is sent in a header');
  }
  const baseUrl = url.href.replace(/\/+$/, '').replace(/\/analyze$/, '');
  return { base_url: baseUrl, api_key: apiKey, language, score_min };
}
