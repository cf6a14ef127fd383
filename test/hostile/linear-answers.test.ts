/**
 * An answer of twice as many parts takes about twice the work, and never four times: in every decoder, whole and
 * streamed, and in every later stage for a client of each API. V8 counts the work; it is not timed.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AttemptState, Frame } from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatChunk, ChatCompletion, Wire } from '../../src/schemas/inner.ts';
import { inTier } from '../tier.ts';
import { startWorkCounter, type WorkCounter } from './counted-work.ts';
import type { Flood } from './floods/flood.ts';
import { floods } from './floods.ts';
import { streamStages, wholeStages } from './stages.ts';

const PARTS = 128;
/**
 * The bound for each function by itself, where linear work of others does not hide its growth. Twice as many entries of
 * a heap or of a sorted list take 2.3 to 2.48 times the steps at this size (each doubling adds as many steps for a part
 * as the last one did); the square of the parts would take four times.
 */
const STEPS_GROWTH_MAX = 2.5;
/** Work that runs less often than this in all stages together does not depend on the parts. */
const STEPS_MIN = 4 * PARTS;
const wires: Wire[] = inTier(['openai-chat', 'anthropic-messages'], [...dialects.keys()]);
/** Measuring memory takes half a minute of processor time, and is done in the second tier. */
const memoryWires = inTier<Wire[]>([], wires);
/**
 * The bound for four times the parts, so that a table that doubles its size in between does not look like quadratic
 * growth (16).
 */
const BYTES_GROWTH_MAX = 5.4;
/** Below this size, sampled amounts are random. */
const BYTES_MIN = 1_000_000;
const BYTES_PARTS = 300;

const state: AttemptState = { generation_id: 'gen-1', tool_names: {}, call_ids: [], generation: 3 };
let counter: WorkCounter;
beforeAll(async () => {
  counter = await startWorkCounter();
});
afterAll(() => counter.stop());

function decoded(wire: Wire, frames: readonly Frame[]): ChatChunk[] {
  const decoder = dialects.get(wire)!.createStreamDecoder(state);
  const chunks: ChatChunk[] = [];
  for (const frame of frames) for (const chunk of decoder.push(frame)) chunks.push(chunk);
  for (const chunk of decoder.end()) chunks.push(chunk);
  return chunks;
}

/** A stage, ready to run on an answer with this number of parts. */
type Made = (n: number) => () => void;

function stagesOf({ wire, stream, whole }: Flood): Record<string, Made> {
  const stages: Record<string, Made> = {};
  if (stream !== undefined) {
    const chunksOf = remembered((n) => decoded(wire, stream(n)));
    stages['decoding the stream'] = (n) => {
      const frames = stream(n);
      return () => decoded(wire, frames);
    };
    for (const [name, run] of Object.entries(streamStages)) {
      stages[`${name}, streamed`] = (n) => {
        const chunks = chunksOf(n);
        return () => run(chunks);
      };
    }
  }
  if (whole !== undefined) {
    const answerOf = remembered(
      (n): ChatCompletion => accumulate(dialects.get(wire)!.decodeResponse(whole(n), state), 0),
    );
    stages['decoding the whole'] = (n) => {
      const body = whole(n);
      return () => void accumulate(dialects.get(wire)!.decodeResponse(body, state), 0);
    };
    for (const [name, run] of Object.entries(wholeStages)) {
      stages[`${name}, whole`] = (n) => {
        const answer = answerOf(n);
        return () => run(answer);
      };
    }
  }
  return stages;
}

function remembered<T>(make: (n: number) => T): (n: number) => T {
  const known = new Map<number, T>();
  return (n) => {
    const made = known.get(n) ?? make(n);
    known.set(n, made);
    return made;
  };
}

test.each(wires)('%s: twice as many parts are twice as many steps of each function', async (wire) => {
  const excesses: string[] = [];
  for (const flood of floods.filter((one) => one.wire === wire)) {
    const stages = Object.values(stagesOf(flood));
    const steps = (n: number) => {
      const runs = stages.map((made) => made(n));
      return counter.steps(() => {
        for (const run of runs) run();
      });
    };
    const [once, twice] = [await steps(PARTS), await steps(2 * PARTS)];
    for (const [name, count] of twice) {
      const before = once.get(name) ?? 0;
      if (count > STEPS_MIN && count > STEPS_GROWTH_MAX * before)
        excesses.push(`${flood.parts}: ${name}: ${before} steps, then ${count}`);
    }
  }
  expect(excesses).toEqual([]);
});

test.each(memoryWires)('%s: four times as many parts need four times as much memory', async (wire) => {
  const excesses: string[] = [];
  for (const flood of floods.filter((one) => one.wire === wire)) {
    const stages = Object.values(stagesOf(flood));
    const bytes = (n: number) => {
      const runs = stages.map((made) => made(n));
      return counter.bytes(() => {
        for (const run of runs) run();
      });
    };
    const measured: string[] = [];
    // The heap is that of this process: other allocations may be counted once, but not each time.
    while (measured.length < 3) {
      const [before, after] = [await bytes(BYTES_PARTS), await bytes(4 * BYTES_PARTS)];
      if (after <= BYTES_MIN || after <= BYTES_GROWTH_MAX * before) break;
      measured.push(`${flood.parts}: ${before} bytes, then ${after}`);
    }
    if (measured.length === 3) excesses.push(...measured);
  }
  expect(excesses).toEqual([]);
});
