import type { Static } from 'typebox';
import * as calls from './settings/calls.ts';
import { objectOf, type Setting, type TakesEffect } from './settings/declare.ts';
import { type endpoint, type model, models, type pricing } from './settings/models.ts';
import { type provider, providers } from './settings/providers.ts';
import * as service from './settings/service.ts';

/** Every setting of `gateway.yaml`, in the order of the guide. */
export const fileSettings = {
  bundled_catalog: service.bundledCatalog,
  providers,
  models,
  auth: service.auth,
  timeouts: service.timeouts,
  ledger: service.ledger,
  retention: service.retention,
  database: service.database,
  http: service.http,
  metrics: service.metrics,
  limits: service.processLimits,
  rate_limits: calls.rateLimits,
  guardrails: calls.guardrails,
  routing: calls.routing,
  compatibility: calls.compatibility,
  media: calls.media,
  responses: calls.responses,
  reasoning_state: calls.reasoningState,
  probes: calls.probes,
  plugins: calls.plugins,
  logging: service.logging,
} as const;

/** A field of `Config` that holds settings of the file. */
export interface FileField {
  field: string;
  /** The section or setting, as the file names it. */
  name: string;
  takesEffect: TakesEffect;
}

/** The fields of `Config` that hold settings of the file. A setting with a `field` of its own is not part of its section's field. */
export function fileFields(): FileField[] {
  return Object.entries<Setting>(fileSettings).flatMap(([name, declared]) => {
    const { takesEffect = 'at the next start', members } = declared;
    const settings = members?.step === '' ? Object.entries(members.settings) : [];
    const own = settings.flatMap(([member, { field, takesEffect: effect = takesEffect }]) =>
      field === undefined ? [] : [{ field, name: `${name}.${member}`, takesEffect: effect }],
    );
    const isDivided = own.length > 0 && own.length === settings.length;
    return isDivided ? own : [{ field: name, name, takesEffect }, ...own];
  });
}

/** The schema that the file is checked with. */
export const ConfigFile = objectOf(fileSettings, 'an object of sections');
export type ConfigFile = Static<typeof ConfigFile>;
export type OcrSection = Static<typeof calls.ocr.schema>;
export type EngineSection = Static<typeof calls.searchEngine.schema>;
export type ProviderSection = Static<typeof provider.schema>;
export type ModelSection = Static<typeof model.schema>;
export type EndpointSection = Static<typeof endpoint.schema>;
export type PricingSection = Static<typeof pricing>;
export type BroadcastSection = Static<typeof service.broadcastDestination.schema>;
export type RateAmountsSection = Static<typeof calls.rateAmounts.schema>;
