import type { BundledCatalog } from '../catalog/bundled.ts';
import { buildCatalog, type DeclaredModel } from '../catalog/catalog.ts';
import type { Provider } from '../providers/provider.ts';
import { didYouMean } from './config-error.ts';

/** What the file declares and nothing can serve: models of no endpoint, endpoints of no known price. */
export function modelWarnings(
  declared: readonly DeclaredModel[],
  providers: readonly Provider[],
  { bundled, allow_unpriced }: { bundled: BundledCatalog; allow_unpriced: boolean },
): string[] {
  const known = new Set(bundled.models.map(({ id }) => id));
  const catalog = buildCatalog({
    bundled,
    config: { bundled_catalog: true, models: declared },
    providers,
    created_default: 0,
  });
  return declared.flatMap(({ id, endpoints }) => {
    if (endpoints === undefined && !known.has(id)) {
      return [`Model ${id} has no endpoints, and no bundled model has this name${didYouMean(id, known)}`];
    }
    if (allow_unpriced || endpoints === undefined) return [];
    const own = new Set(endpoints.map(({ provider }) => provider));
    return (catalog.find(id)?.endpoints ?? []).flatMap(({ provider, tag, pricing }) => {
      const lacking = (['prompt', 'completion'] as const).filter((name) => pricing[name] === undefined);
      return lacking.length === 0 || !own.has(provider)
        ? []
        : [
            `Model ${id} at ${tag} is refused: its pricing says no ${lacking.join(' and no ')} (0 where it costs nothing)`,
          ];
    });
  });
}
