import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { StoredKey } from '../accounts/key.ts';
import type { StoredWorkspace } from '../accounts/workspace.ts';
import type { Budget } from '../schemas/budget.ts';
import type { BoundGuardrail } from '../schemas/guardrail.ts';
import { toBoundGuardrail } from './guardrails.ts';
import { toKey } from './keys.ts';
import type { Queries } from './queries.ts';
import { type Tables, tables } from './schema.ts';
import { toWorkspace } from './workspaces.ts';

/** A key with all that its calls depend on, as the store has it at one moment. */
export interface KeyFacts {
  /** The key, then the keys that it was made with, the nearest first. */
  lineage: readonly [StoredKey, ...StoredKey[]];
  /** The budgets in force of the key, its owner, its workspace, its organization, and of the keys that it was made with, but management keys. */
  budgets: readonly (Budget & { subject: string })[];
  /** The guardrails of the key, of those keys, of its owner and of its workspace; one may be there in several scopes. */
  guardrails: readonly BoundGuardrail[];
  workspace: StoredWorkspace | undefined;
}

const SOURCES = {
  key: 'api_keys',
  budget: 'ledger_budgets',
  guardrail: 'guardrails',
  workspace: 'workspaces',
} as const;
type Part = keyof typeof SOURCES;

/** A row of the lookup. The columns of the part's table are set, those of the other tables null. */
interface PartRow extends Record<string, unknown> {
  part: Part;
  scope: string;
  /** The key above, if the row belongs to one; otherwise empty. */
  ancestor: string;
}

const PARTS = Object.keys(SOURCES) as Part[];
const SQL_TYPES = { text: 'TEXT', bigint: 'BIGINT', boolean: 'BOOLEAN', json: 'TEXT' };
type Kind = keyof typeof SQL_TYPES;

function kindsOf(part: Part): [string, Kind][] {
  const columns = Object.entries<{ kind: Kind }>(tables[SOURCES[part]]);
  return columns.map(([column, { kind }]) => [column, kind]);
}

/** The columns of a part's table as a row, with nulls for those of the other tables. JSON columns are text here. */
function columnsOf(part: Part, alias: string) {
  const columns = PARTS.flatMap((other) =>
    kindsOf(other).map(([column, kind]) => {
      const value = other === part ? `${alias}.${column}` : 'NULL';
      return `CAST(${value} AS ${SQL_TYPES[kind]}) AS ${other}_${column}`;
    }),
  );
  return sql.raw(columns.join(', '));
}

const COLUMNS = {
  key: columnsOf('key', 'k'),
  budget: columnsOf('budget', 'b'),
  guardrail: columnsOf('guardrail', 'g'),
  workspace: columnsOf('workspace', 'w'),
};

/** Converts a value as drivers do for columns that are not cast. */
function readValue(kind: Kind, value: unknown): unknown {
  if (value === null) return null;
  if (kind === 'boolean') return Boolean(value);
  return kind === 'json' ? JSON.parse(value as string) : value;
}

function rowOf<P extends Part>(part: P, row: PartRow): Selectable<Tables[(typeof SOURCES)[P]]> {
  const columns = kindsOf(part).map(([column, kind]) => [column, readValue(kind, row[`${part}_${column}`])]);
  return Object.fromEntries(columns) as Selectable<Tables[(typeof SOURCES)[P]]>;
}

/**
 * One statement for a key and all that belongs to it, by its hash or by the SHA-256 of a secret that it has or had: whether that secret is
 * valid, `secretEnd` says. Undefined if there is no such key. Each part compares an index with values that are known before, so that its
 * plan does not depend on statistics of the tables.
 */
export async function findKeyFacts(queries: Queries, digest: string): Promise<KeyFacts | undefined> {
  const hash = sql`(SELECT hash FROM own)`;
  const organization = sql`(SELECT organization_id FROM own)`;
  const workspaceId = sql`(SELECT workspace_id FROM own)`;
  const guardrail = (scope: string, of: RawBuilder<unknown>) => sql`
    UNION ALL SELECT 'guardrail', ${sql.lit(scope)}, '', ${COLUMNS.guardrail} FROM guardrails AS g
      WHERE g.organization_id = ${organization} AND g.id = ${of}`;
  const { rows } = await sql<PartRow>`
    WITH own AS (SELECT hash, organization_id, workspace_id, creator_user_id FROM api_keys WHERE hash = COALESCE(
      (SELECT hash FROM api_keys WHERE hash = ${digest}), (SELECT hash FROM api_keys WHERE secret_hash = ${digest}),
      (SELECT hash FROM api_keys WHERE previous_secret_hash = ${digest})))
    SELECT 'key' AS part, '' AS scope, '' AS ancestor, ${COLUMNS.key} FROM api_keys AS k WHERE k.hash = ${hash}
    UNION ALL SELECT 'key', '', k.hash, ${COLUMNS.key} FROM api_key_ancestors AS a JOIN api_keys AS k ON k.hash = a.ancestor_hash
      WHERE a.key_hash = ${hash}
    UNION ALL SELECT 'budget', '', '', ${COLUMNS.budget} FROM ledger_budgets AS b
      WHERE b.limit_nano IS NOT NULL AND b.subject IN ('key:' || ${hash}, (SELECT 'workspace:' || workspace_id FROM own),
        (SELECT 'user:' || organization_id || ':' || creator_user_id FROM own), (SELECT 'organization:' || organization_id FROM own))
    UNION ALL SELECT 'budget', '', a.ancestor_hash, ${COLUMNS.budget} FROM api_key_ancestors AS a
      JOIN ledger_budgets AS b ON b.subject = 'key:' || a.ancestor_hash
      WHERE a.key_hash = ${hash} AND b.limit_nano IS NOT NULL
    UNION ALL SELECT 'workspace', '', '', ${COLUMNS.workspace} FROM workspaces AS w
      WHERE w.id = ${workspaceId} AND w.organization_id = ${organization}
    ${guardrail('workspace', sql`(SELECT w.default_guardrail_id FROM workspaces AS w WHERE w.id = ${workspaceId})`)}
    ${guardrail(
      'member',
      sql`(SELECT a.guardrail_id FROM guardrail_member_assignments AS a WHERE a.organization_id = ${organization}
      AND a.user_id = (SELECT creator_user_id FROM own))`,
    )}
    ${guardrail(
      'api-key',
      sql`(SELECT a.guardrail_id FROM guardrail_key_assignments AS a WHERE a.organization_id = ${organization}
      AND a.key_hash = ${hash})`,
    )}
    UNION ALL SELECT 'guardrail', 'api-key', p.ancestor_hash, ${COLUMNS.guardrail} FROM api_key_ancestors AS p
      JOIN guardrail_key_assignments AS a ON a.key_hash = p.ancestor_hash JOIN guardrails AS g ON g.id = a.guardrail_id
      WHERE p.key_hash = ${hash} AND a.organization_id = ${organization} AND g.organization_id = a.organization_id`.execute(
    queries,
  );
  // A key's number is above its parent's.
  const [key, ...ancestors] = rows
    .filter(({ part }) => part === 'key')
    .map((row) => toKey(rowOf('key', row)))
    .sort((one, other) => other.id - one.id);
  if (key === undefined) return undefined;
  const management = new Set(ancestors.filter(({ is_management }) => is_management).map((ancestor) => ancestor.hash));
  const of = (part: Part) => rows.filter((row) => row.part === part && !management.has(row.ancestor));
  const [workspace] = of('workspace');
  return {
    lineage: [key, ...ancestors],
    budgets: of('budget')
      .map((row) => budgetOf(rowOf('budget', row)))
      .sort((one, other) => (one.id < other.id ? -1 : 1)),
    guardrails: of('guardrail').map((row) => toBoundGuardrail({ ...rowOf('guardrail', row), scope: row.scope })),
    workspace: workspace && toWorkspace(rowOf('workspace', workspace)),
  };
}

/** The columns' CHECKs allow only the values of the type. */
function budgetOf(row: Selectable<Tables['ledger_budgets']>): KeyFacts['budgets'][number] {
  const { id, subject, scope, label, reset_interval, limit_nano, include_byok } = row;
  return { id, subject, scope, label, reset_interval, limit_nano, include_byok } as KeyFacts['budgets'][number];
}
