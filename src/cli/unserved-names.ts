import type { Catalog } from '../catalog/catalog.ts';
import { didYouMean } from '../config/config-error.ts';
import type { Config } from '../config.ts';
import { routerOf } from '../inference/plan/requested-models.ts';
import { latestModels } from '../routing/families.ts';
import { AUTO } from '../routing/router-models.ts';
import { resolveVariant } from '../routing/variants.ts';

/** Warnings for names in the configuration that no active provider serves. */
export function unservedNames({ default_model, routing }: Config, catalog: Catalog): string[] {
  const latest = latestModels(catalog.models());
  const has = (id: string) => catalog.find(id) !== undefined;
  const router = (id: string) => {
    const name = routerOf(id);
    const among = name === AUTO ? routing.auto_models : routing.free_models;
    return among === undefined ? undefined : name;
  };
  const isServed = (name: string) =>
    resolveVariant<object | string>(name, (id) => catalog.find(id) ?? router(id) ?? latest.get(id)) !== undefined;
  const free = routing.free_models === 'all' ? [] : (routing.free_models ?? []);
  const missing: (readonly [string, string])[] = [
    ...(default_model === undefined || isServed(default_model)
      ? []
      : [['GATEWAY_DEFAULT_MODEL', default_model] as const]),
    ...(routing.auto_models ?? []).filter((id) => !has(id)).map((id) => ['routing.auto_models', id] as const),
    ...free.filter((id) => !has(id)).map((id) => ['routing.free_models', id] as const),
    ...[...routing.users].flatMap(([user, { default_text_model: name }]) =>
      name === undefined || isServed(name) ? [] : [[`routing.users.${user}`, name] as const],
    ),
  ];
  const ids = () => catalog.models().map(({ id }) => id);
  return missing.map(
    ([where, name]) => `${where} names ${name}, which no active provider serves${didYouMean(name, ids())}`,
  );
}
