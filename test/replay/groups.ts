import { answerGroups } from './recorded-answers.ts';
import { requestGroups } from './recorded-requests.ts';
import type { GroupRun, ReplayGroup } from './run-group.ts';
import { transcriptGroups } from './transcripts.ts';

/** All that is replayed, in order. */
export const groups: readonly ((run: GroupRun) => ReplayGroup)[] = [
  ...transcriptGroups,
  ...answerGroups,
  ...requestGroups,
];
