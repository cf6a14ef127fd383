import type { DeclaredEndpoint, DeclaredModel } from '../catalog/catalog.ts';
import { dialects } from '../providers/dialects.ts';
import { didYouMean, readEach } from './config-error.ts';
import type { EndpointSection, ModelSection } from './file-schema.ts';
import { declaredPricing } from './pricing.ts';
import type { Path, ReadFile } from './read-file.ts';

const MODEL_ID = /^[^/\s]+\/\S+$/;

/** Converts the file's models to declarations with exact prices, and checks that their providers exist. */
export function declaredModels(file: ReadFile, providers: ReadonlySet<string>, bundled: boolean): DeclaredModel[] {
  return readEach(
    Object.entries(file.value.models ?? {}).map(
      ([id, section]) =>
        () =>
          declaredModel(file, id, section, providers, bundled),
    ),
  );
}

function declaredModel(
  file: ReadFile,
  id: string,
  section: ModelSection,
  providers: ReadonlySet<string>,
  bundled: boolean,
): DeclaredModel {
  const path: Path = ['models', id];
  if (!MODEL_ID.test(id)) throw file.wrong(path, 'must be named author/slug');
  if (!bundled && section.endpoints === undefined) {
    throw file.wrong(path, 'must have endpoints, because bundled_catalog is false');
  }
  const { endpoints, ...facts } = section;
  if (endpoints === undefined) return { id, ...facts };
  const tags = new Map<string, number>();
  const declared = endpoints.map((endpoint, index) => () => {
    const at = [...path, 'endpoints', index];
    const tag = `${endpoint.provider}/${endpoint.variant ?? ''}`;
    const twin = tags.get(tag);
    if (twin !== undefined) {
      throw file.wrong(
        at,
        `has the same provider as endpoints[${twin}]; distinguish them by variant, for example "variant: turbo"`,
      );
    }
    tags.set(tag, index);
    return declaredEndpoint(file, at, endpoint, providers);
  });
  return { id, ...facts, endpoints: readEach(declared) };
}

function declaredEndpoint(
  file: ReadFile,
  path: Path,
  { pricing, ...facts }: EndpointSection,
  providers: ReadonlySet<string>,
): DeclaredEndpoint {
  if (!providers.has(facts.provider)) {
    throw file.wrong(
      [...path, 'provider'],
      `must be the slug of a provider, not "${facts.provider}"${didYouMean(facts.provider, providers)}`,
    );
  }
  if (facts.dialect !== undefined && !dialects.has(facts.dialect)) {
    throw file.wrong([...path, 'dialect'], `must be one of ${[...dialects.keys()].join(', ')}`);
  }
  return pricing === undefined ? facts : { ...facts, ...declaredPricing(file, [...path, 'pricing'], pricing) };
}
