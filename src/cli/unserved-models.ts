import type { BundledCatalog } from '../catalog/bundled.ts';
import type { Config } from '../config.ts';
import { declaredSandbox } from './with-sandbox.ts';

/** The providers that a message names for one model, of those that would serve it. */
const UNSERVED_PROVIDERS_SHOWN = 3;

/** The variables that a reason names; undefined if the reason is another one. */
function variablesOf(reason: string): string | undefined {
  return /^(.*) is not set$/.exec(reason)?.[1];
}

/**
 * Returns a function that says how to enable a known model that no active provider serves: a model of the sandbox or of the
 * bundled catalog. It returns undefined for any other name.
 */
export function unservedModels(
  { providers, providers_off, bundled_catalog, sandbox }: Config,
  bundled: BundledCatalog,
): (id: string) => string | undefined {
  const off = new Map(providers_off.map((provider) => [provider.slug, provider]));
  /** The providers of each model; the other facts are not kept in memory. */
  const known = new Map(
    (bundled_catalog ? bundled.models : []).map(({ id, endpoints }) => [
      id,
      [...new Set(endpoints.map(({ provider }) => provider))],
    ]),
  );
  let sandboxIds: ReadonlySet<string> | undefined;

  function sandboxOff(id: string): string | undefined {
    sandboxIds ??= new Set(Object.keys(declaredSandbox('http://127.0.0.1').models));
    if (sandbox || !sandboxIds.has(id)) return undefined;
    const why = providers.length === 0 ? '' : ' while a provider is on';
    return `${id} is a model of the sandbox, which is off${why}: set GATEWAY_SANDBOX=on, or use a model of a provider`;
  }

  return (id) => {
    const slugs = known.get(id);
    if (slugs === undefined) return sandboxOff(id);
    // The maker's own service first.
    const author = id.slice(0, id.indexOf('/'));
    const serving = slugs
      .toSorted((a, b) => Number(b === author) - Number(a === author))
      .flatMap((slug) => off.get(slug) ?? []);
    if (serving.length === 0) return undefined;
    const ways = serving.slice(0, UNSERVED_PROVIDERS_SHOWN).map(({ name, reason }) => {
      const variables = variablesOf(reason);
      return variables === undefined ? `${name} is off, since ${reason}` : `set ${variables} for ${name}`;
    });
    return `${id} has no provider that is on: ${ways.join(', or ')}`;
  };
}
