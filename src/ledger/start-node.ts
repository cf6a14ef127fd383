import { readLastRun } from './journal/last-run.ts';
import { lastAcknowledged, type Outcome, outcomeOfUnfinished, replay, type Unfinished } from './journal/replay.ts';
import { Segments } from './journal/segments.ts';
import type { Slot } from './journal/slot.ts';
import { lookUpAll } from './lookup.ts';
import { Node } from './node.ts';
import type { RecorderOptions } from './recorder.ts';
import { register } from './registration.ts';
import { isMoney } from './settle.ts';

const SHORT_OF_SPACE =
  'the disk is short of space: a journal segment was deleted early. If the store is restored to an earlier time, this node cannot send it those entries again. Give the data directory more space, or lower ledger.journal_keep_bytes';

function openSegments(slot: Slot, { disk, journal_keep, clock, log }: RecorderOptions): Segments {
  return new Segments(slot.dir, {
    disk,
    keep: journal_keep,
    onDamage: (file, at) =>
      log.error({ file, at }, 'an archived journal segment is damaged; its readable part is used'),
    onDiscard: ({ name, bytes, closed_at }) => {
      const facts = { dir: slot.dir, segment: name, bytes, age_ms: clock.now() - (closed_at ?? 0) };
      log.warn(facts, SHORT_OF_SPACE);
    },
  });
}

/** The outcomes of attempts that the slot's last owner left unfinished: what the provider reports if it is known, otherwise the policy's. */
async function endAll(unfinished: readonly Unfinished[], options: RecorderOptions): Promise<Outcome[]> {
  const reports = await lookUpAll(unfinished, options);
  return unfinished.map((attempt) => {
    const report = reports.get(attempt.id);
    const isValid = report === undefined || isMoney(report.cost_nano);
    if (!isValid)
      options.log.error(
        { generation: attempt.id, report },
        'the usage that a provider reports for an attempt is not valid',
      );
    return outcomeOfUnfinished(attempt, options.unknown_outcome, isValid ? report : undefined);
  });
}

/**
 * Replays what the slot's last owner left, under a new epoch, and records from then on. A store that knows less than the
 * journal saw acknowledged was restored from a backup: it is sent again what it forgot. Rejects if a journal is damaged or
 * the store does not answer.
 */
export async function startNode(slot: Slot, options: RecorderOptions): Promise<Node> {
  const { store, clock, log } = options;
  const segments = openSegments(slot, options);
  const left = replay(segments);
  if (options.journal_sync === 'group') await segments.sync();
  // Before anything is registered or written: if the gateway ends here, the next start sees the same journal.
  const ended = await endAll(left.unknown, options);
  const registered = await register(store, slot.node, {
    epochSeen: segments.epoch,
    acknowledged: await lastAcknowledged(segments),
    onForgotten: (known) => segments.oweFrom(known),
    clock,
  });
  if (left.lost.length > 0) {
    const files = left.lost.map(({ name }) => name);
    log.warn(
      { node: slot.node, files },
      'the end of a journal file was lost in a power failure; the files that continue it are dropped',
    );
    segments.discard(left.lost);
  }
  const node = new Node(slot, segments, registered, options);
  try {
    await node.replay(left, { ended, last: readLastRun(slot.dir, segments.disk) });
    return node;
  } catch (error) {
    await node.stop();
    throw error;
  }
}
