import { invalidField } from '../errors.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../schemas/json.ts';
import { lookupTable } from '../schemas/lookup-table.ts';

/** The engine for PDFs. If none is named, the endpoint reads them if it can, otherwise the gateway. */
export type PdfEngine = 'native' | 'pdf-text' | 'mistral-ocr';

/** The names of engines in the public API. `cloudflare-ai` is its text extraction. */
const ENGINES: Readonly<Record<string, PdfEngine>> = lookupTable({
  native: 'native',
  'pdf-text': 'pdf-text',
  'cloudflare-ai': 'pdf-text',
  'mistral-ocr': 'mistral-ocr',
});

/** The options that `routing/router-models.ts` reads. */
const AUTO_OPTIONS = [
  'id',
  'enabled',
  'allowed_models',
  'excluded_models',
  'cost_tier',
  'cost_quality_tradeoff',
  'pin_model',
];

type Plugin = NonNullable<ChatRequest['plugins']>[number];

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuseUnknown(options: JsonObject, known: readonly string[], field: string): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const names = known.filter((name) => name !== 'id').join(', ');
  throw invalidField(`${field}.${unknown.slice(0, 100)}`, `is not an option of this plugin; its options are ${names}`);
}

function checkFileParser(plugin: Plugin, field: string, hasOcr: boolean): void {
  refuseUnknown(plugin, ['id', 'enabled', 'pdf'], field);
  const { pdf } = plugin;
  if (pdf === undefined || pdf === null) return;
  if (!isObject(pdf)) throw invalidField(`${field}.pdf`, 'must be an object');
  refuseUnknown(pdf, ['engine'], `${field}.pdf`);
  const { engine } = pdf;
  if (engine === undefined || engine === null) return;
  if (typeof engine !== 'string' || !Object.hasOwn(ENGINES, engine)) {
    throw invalidField(`${field}.pdf.engine`, `must be one of ${Object.keys(ENGINES).join(', ')}`);
  }
  if (ENGINES[engine] === 'mistral-ocr' && !hasOcr && plugin.enabled !== false) {
    throw invalidField(`${field}.pdf.engine`, 'is not configured (plugins.file_parser.ocr): use pdf-text or native');
  }
}

function checkCompression(plugin: Plugin, field: string): void {
  refuseUnknown(plugin, ['id', 'enabled', 'engine'], field);
  if (plugin['engine'] === undefined || plugin['engine'] === null || plugin['engine'] === 'middle-out') return;
  throw invalidField(`${field}.engine`, 'must be middle-out');
}

/** Plugins of the public API that do not exist here, and their alternatives. */
const MISSING: Readonly<Record<string, string>> = lookupTable({
  moderation: 'does not exist here: filters of a guardrail check contents',
  fusion: 'does not exist here: call several models yourself',
  'pareto-router': 'does not exist here: use gateway/auto with the plugin auto-router, or provider.max_price',
});

function checkWeb(plugin: Plugin, field: string): void {
  if (plugin['x_search'] == null || plugin.enabled === false) return;
  throw invalidField(`${field}.x_search`, 'is not an option here: send x_search_filter to search X');
}

function checkPlugin(plugin: Plugin, field: string, hasOcr: boolean): void {
  const { id, enabled } = plugin;
  if (id === 'file-parser') checkFileParser(plugin, field, hasOcr);
  else if (id === 'context-compression') checkCompression(plugin, field);
  else if (id === 'response-healing') refuseUnknown(plugin, ['id', 'enabled'], field);
  else if (id === 'auto-router') refuseUnknown(plugin, AUTO_OPTIONS, field);
  else if (id === 'web') checkWeb(plugin, field);
  else if (Object.hasOwn(MISSING, id) && enabled !== false) {
    throw invalidField(field, `names ${id}, which ${MISSING[id]}; leave it out, or send enabled: false`);
  }
}

/** Throws a `GatewayError` 400 that names the first unknown plugin or option, which would otherwise be ignored silently. */
export function checkPluginOptions({ plugins }: ChatRequest, hasOcr: boolean): void {
  if (!plugins) return;
  for (const [at, plugin] of plugins.entries()) checkPlugin(plugin, `plugins[${at}]`, hasOcr);
}

/** Whether a request enables a plugin. Undefined if it does not mention it. */
export function asksFor({ plugins }: ChatRequest, id: string): boolean | undefined {
  const named = plugins?.findLast((plugin) => plugin.id === id);
  return named && named.enabled !== false;
}

/** The engine that a request names for PDFs. Its options must be checked before. */
export function pdfEngineOf({ plugins }: ChatRequest): PdfEngine | undefined {
  const pdf = plugins?.findLast(({ id }) => id === 'file-parser')?.['pdf'];
  const engine = isObject(pdf) ? pdf['engine'] : undefined;
  return typeof engine === 'string' && Object.hasOwn(ENGINES, engine) ? ENGINES[engine] : undefined;
}
