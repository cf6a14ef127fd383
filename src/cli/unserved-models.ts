import type { BundledCatalog } from '../catalog/bundled.ts';
import type { Config } from '../config.ts';
import { limits } from '../limits.ts';
import { declaredSandbox } from './with-sandbox.ts';

/** The variables that a reason names, or undefined where it is another one. */
function variablesOf(reason: string): string | undefined {
  return /^(.*) is not set$/.exec(reason)?.[1];
}

/**
 * Makes what says of a model that is known, and that no provider serves, how to turn it on: the sandbox's, and those of the bundled
 * catalog. Undefined for any other name.
 */
export function unservedModels(
  { providers, providers_off, bundled_catalog, sandbox }: Config,
  bundled: BundledCatalog,
): (id: string) => string | undefined {
  const off = new Map(providers_off.map((provider) => [provider.slug, provider]));
  /** Who serves a model: the rest of the facts is not kept. */
  const known = new Map(
    (bundled_catalog ? bundled.models : []).map(({ id, endpoints }) => [
      id,
      [...new Set(endpoints.map(({ provider }) => provider))],
    ]),
  );
  let of_sandbox: ReadonlySet<string> | undefined;

  function sandboxOff(id: string): string | undefined {
    of_sandbox ??= new Set(Object.keys(declaredSandbox('http://127.0.0.1').models));
    if (sandbox || !of_sandbox.has(id)) return undefined;
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
    const ways = serving.slice(0, limits.unserved_providers_shown).map(({ name, reason }) => {
      const variables = variablesOf(reason);
      return variables === undefined ? `${name} is off, since ${reason}` : `set ${variables} for ${name}`;
    });
    return `${id} has no provider that is on: ${ways.join(', or ')}`;
  };
}
