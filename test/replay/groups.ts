import { failoverCases, heartbeatCases, hedgeCases } from './failover-cases.ts';
import { answerGroups } from './recorded-answers.ts';
import { requestGroups } from './recorded-requests.ts';
import type { GroupRun, ReplayGroup } from './run-group.ts';
import { toolCases } from './tool-cases.ts';
import { transcriptGroups } from './transcripts.ts';

/** All groups of the replay, in order. */
export const groups: readonly ((run: GroupRun) => ReplayGroup)[] = [
  toolCases,
  failoverCases,
  heartbeatCases,
  hedgeCases,
  ...transcriptGroups,
  ...answerGroups,
  ...requestGroups,
];
