import { type Selectable, sql } from 'kysely';
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

/** A row of the lookup: the columns of one table are set, those of the others null. */
type Part = { part: 'key' | 'budget' | 'guardrail' | 'workspace'; scope: string } & Record<string, unknown>;

const SOURCES = { k: 'api_keys', b: 'ledger_budgets', g: 'guardrails', w: 'workspaces' } as const;
type Source = keyof typeof SOURCES;

const columnsOf = (source: Source) => Object.keys(tables[SOURCES[source]]);

/** The columns of all tables under names that differ. */
const COLUMNS = sql.raw(
  (Object.keys(SOURCES) as Source[])
    .flatMap((source) => columnsOf(source).map((column) => `${source}.${column} AS ${source}_${column}`))
    .join(', '),
);

function rowOf<S extends Source>(source: S, part: Part): Selectable<Tables[(typeof SOURCES)[S]]> {
  const columns = columnsOf(source).map((column) => [column, part[`${source}_${column}`]]);
  return Object.fromEntries(columns) as Selectable<Tables[(typeof SOURCES)[S]]>;
}

/** One statement for a key and all that belongs to it; undefined if there is no such key. */
export async function findKeyFacts(queries: Queries, hash: string): Promise<KeyFacts | undefined> {
  const { rows } = await sql<Part>`
    WITH own AS (SELECT hash, organization_id, workspace_id, creator_user_id FROM api_keys WHERE hash = ${hash}),
    lineage AS (
      SELECT hash FROM own
      UNION ALL SELECT k.hash FROM api_key_ancestors AS a JOIN api_keys AS k ON k.hash = a.ancestor_hash
        WHERE a.key_hash = ${hash}),
    payers AS (
      SELECT hash FROM own
      UNION ALL SELECT k.hash FROM api_key_ancestors AS a JOIN api_keys AS k ON k.hash = a.ancestor_hash
        WHERE a.key_hash = ${hash} AND NOT k.is_management),
    subjects AS (
      SELECT 'key:' || hash AS subject FROM payers
      UNION ALL SELECT 'user:' || organization_id || ':' || creator_user_id FROM own WHERE creator_user_id IS NOT NULL
      UNION ALL SELECT 'workspace:' || workspace_id FROM own
      UNION ALL SELECT 'organization:' || organization_id FROM own),
    parts AS (
      SELECT 'key' AS part, '' AS scope, hash AS id FROM lineage
      UNION ALL SELECT 'budget', '', b.id FROM subjects AS s JOIN ledger_budgets AS b ON b.subject = s.subject
        WHERE b.limit_nano IS NOT NULL
      UNION ALL SELECT 'guardrail', 'workspace', w.default_guardrail_id FROM own
        JOIN workspaces AS w ON w.id = own.workspace_id AND w.organization_id = own.organization_id
        WHERE w.default_guardrail_id IS NOT NULL
      UNION ALL SELECT 'guardrail', 'member', a.guardrail_id FROM own
        JOIN guardrail_member_assignments AS a ON a.user_id = own.creator_user_id AND a.organization_id = own.organization_id
      UNION ALL SELECT 'guardrail', 'api-key', a.guardrail_id FROM payers AS p
        JOIN guardrail_key_assignments AS a ON a.key_hash = p.hash
      UNION ALL SELECT 'workspace', '', workspace_id FROM own)
    SELECT p.part, p.scope, ${COLUMNS} FROM parts AS p CROSS JOIN own
      LEFT JOIN api_keys AS k ON p.part = 'key' AND k.hash = p.id
      LEFT JOIN ledger_budgets AS b ON p.part = 'budget' AND b.id = p.id
      LEFT JOIN guardrails AS g ON p.part = 'guardrail' AND g.id = p.id AND g.organization_id = own.organization_id
      LEFT JOIN workspaces AS w ON p.part = 'workspace' AND w.id = p.id AND w.organization_id = own.organization_id`.execute(
    queries,
  );
  const of = (part: Part['part']) => rows.filter((row) => row.part === part);
  // A key's number is above its parent's.
  const [key, ...ancestors] = of('key')
    .map((part) => toKey(rowOf('k', part)))
    .sort((one, other) => other.id - one.id);
  if (key === undefined) return undefined;
  const [workspace] = of('workspace').filter((part) => part['w_id'] !== null);
  return {
    lineage: [key, ...ancestors],
    budgets: of('budget')
      .map((part) => budgetOf(rowOf('b', part)))
      .sort((one, other) => (one.id < other.id ? -1 : 1)),
    guardrails: of('guardrail')
      .filter((part) => part['g_id'] !== null)
      .map((part) => toBoundGuardrail({ ...rowOf('g', part), scope: part.scope })),
    workspace: workspace && toWorkspace(rowOf('w', workspace)),
  };
}

/** The columns' CHECKs allow only the values of the type. */
function budgetOf(row: Selectable<Tables['ledger_budgets']>): KeyFacts['budgets'][number] {
  const { id, subject, scope, label, reset_interval, limit_nano, include_byok } = row;
  return { id, subject, scope, label, reset_interval, limit_nano, include_byok } as KeyFacts['budgets'][number];
}
