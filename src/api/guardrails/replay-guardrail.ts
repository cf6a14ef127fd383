import type { StoredWorkspace } from '../../accounts/workspace.ts';
import { invalidField } from '../../errors.ts';
import type { Analyzer } from '../../guardrails/entities/analyzer.ts';
import { filterSetOf } from '../../guardrails/policy/filter-set.ts';
import { type Replay, replay } from '../../guardrails/policy/replay.ts';
import type { Clock } from '../../inference/call.ts';
import { analyzeInTime, unavailable } from '../../inference/guardrails/dry-run.ts';
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import type { ReplaySelection } from '../../schemas/guardrail-replay.ts';
import type { WorkspaceName } from '../../storage/workspaces.ts';
import type { LoggedContents } from '../chat/logged-contents.ts';

const REPLAY_MS_MAX = 20_000;

/** The logged requests. */
export interface ReplaySources {
  contents: Pick<LoggedContents, 'list'>;
  findWorkspace(name: WorkspaceName): Promise<StoredWorkspace | undefined>;
  analyzer: Analyzer;
  timeoutMs(): number;
  phoneRegions?(): readonly string[];
  clock: Clock;
}

const EVER = '1970-01-01T00:00:00.000Z';

/**
 * Tests a guardrail on logged requests of a workspace of the organization. Throws a 400 if there is no such workspace, or it logs none, and
 * a 503 if the detectors of names and addresses do not answer in time.
 */
export async function replayGuardrail(
  guardrail: BoundGuardrail,
  selection: ReplaySelection,
  organizationId: string,
  { contents, findWorkspace, analyzer, timeoutMs, phoneRegions, clock }: ReplaySources,
): Promise<Replay> {
  const workspace = await findWorkspace({ organization_id: organizationId, id_or_slug: selection.workspace_id });
  if (workspace === undefined) throw invalidField('replay.workspace_id', 'must be a workspace of this organization');
  if (!workspace.is_observability_io_logging_enabled) {
    throw invalidField('replay.workspace_id', 'must be a workspace that keeps requests: I/O logging is off there');
  }
  const set = filterSetOf([guardrail], phoneRegions?.());
  if (set === undefined) throw invalidField('guardrail', 'must have a content filter: only those read content');
  const since = selection.since === undefined ? EVER : new Date(selection.since).toISOString();
  const logged = contents.list({
    workspace_id: workspace.id,
    since,
    limit: selection.limit ?? limits.replay_requests_default,
  });
  const untilMs = clock.monotonicMs() + REPLAY_MS_MAX;
  const requests = async function* () {
    for await (const { id, content } of logged) yield { id, request: content.request };
  };
  return replay(requests(), {
    set,
    pause: nextTurn,
    analyze: (texts) => analyzeInTime(analyzer, texts, timeoutMs()).catch(unavailable),
    isLate: () => clock.monotonicMs() > untilMs,
  });
}
