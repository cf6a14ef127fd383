import type { OpenRecord } from '../records.ts';

/** Kept contexts: of all keys, and of one key. */
const CONTEXTS_MAX = 2_000;
const CONTEXTS_OF_KEY_MAX = 8;

/** The values common to the records of one client's calls to one endpoint. */
export type ContextFields = Pick<
  OpenRecord,
  | 'api_type'
  | 'key_hash'
  | 'workspace_id'
  | 'organization_id'
  | 'user_id'
  | 'model'
  | 'requested_model'
  | 'provider_name'
  | 'endpoint_id'
  | 'streamed'
  | 'is_byok'
  | 'http_referer'
  | 'title'
  | 'categories'
  | 'user_agent'
>;

/** The values of a context. The order never changes: new ones are added at the end. */
function contextValues(record: ContextFields) {
  return [
    record.api_type,
    record.key_hash,
    record.workspace_id,
    record.organization_id,
    record.user_id,
    record.model,
    record.requested_model,
    record.provider_name,
    record.endpoint_id,
    record.streamed,
    record.is_byok,
    record.http_referer,
    record.title,
    record.categories,
    record.user_agent,
  ] as const;
}

export type ContextValues = ReturnType<typeof contextValues>;

/** The inverse of the values in `RecordContext.text`. */
export function contextOf(values: ContextValues): ContextFields {
  const [apiType, keyHash, workspaceId, organizationId, userId, model, requestedModel, ...others] = values;
  const [providerName, endpointId, streamed, isByok, httpReferer, title, categories, userAgent] = others;
  return {
    ...{ api_type: apiType, key_hash: keyHash, workspace_id: workspaceId, organization_id: organizationId },
    ...{ user_id: userId ?? null, model, requested_model: requestedModel, provider_name: providerName },
    ...{ endpoint_id: endpointId, streamed, is_byok: isByok, http_referer: httpReferer, title, categories },
    user_agent: userAgent,
  };
}

/** A context with its text: a process encodes it once, not for each call. */
export class RecordContext {
  readonly fields: ContextFields;
  /** The JSON of its values. */
  readonly text: string;

  constructor(record: ContextFields) {
    const values = contextValues(record);
    // Not the record itself, which would keep its attempts.
    this.fields = contextOf(values);
    this.text = JSON.stringify(values);
  }

  /** Whether it is the context of `record`. */
  fits(record: ContextFields): boolean {
    const { fields } = this;
    return (
      fields.key_hash === record.key_hash &&
      fields.endpoint_id === record.endpoint_id &&
      fields.model === record.model &&
      fields.requested_model === record.requested_model &&
      fields.user_agent === record.user_agent &&
      fields.streamed === record.streamed &&
      fields.api_type === record.api_type &&
      fields.is_byok === record.is_byok &&
      fields.workspace_id === record.workspace_id &&
      fields.organization_id === record.organization_id &&
      fields.user_id === (record.user_id ?? null) &&
      fields.provider_name === record.provider_name &&
      fields.http_referer === record.http_referer &&
      fields.title === record.title &&
      fields.categories.length === record.categories.length &&
      fields.categories.every((category, at) => category === record.categories[at])
    );
  }
}

/** By key. */
const known = new Map<string, RecordContext[]>();
let count = 0;

/** The context of a record. Contexts of the same values are the same object, while they are kept. */
export function contextFor(record: ContextFields): RecordContext {
  let ofKey = known.get(record.key_hash);
  if (ofKey !== undefined) {
    for (const context of ofKey) if (context.fits(record)) return context;
  }
  const context = new RecordContext(record);
  if (count >= CONTEXTS_MAX) {
    known.clear();
    count = 0;
    ofKey = undefined;
  }
  if (ofKey === undefined) {
    ofKey = [];
    known.set(record.key_hash, ofKey);
  }
  if (ofKey.length < CONTEXTS_OF_KEY_MAX) count++;
  else ofKey.shift();
  ofKey.push(context);
  return context;
}
