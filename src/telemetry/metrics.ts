import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Gauge, Registry } from 'prom-client';
import { type AssertedRule, assertedRules } from '../errors.ts';
import { limits } from '../limits.ts';
import { createDurations } from './durations.ts';

/** Values of one label of a metric. Further values are counted as `other`. */
export const METRIC_LABEL_VALUES_MAX = 2_000;
/** The interval of queries for the reservations of lost nodes. */
const DOUBT_READ_MS = 15_000;

/** The state of the ledger's recorder, for the gauges. */
export interface RecorderState {
  unflushed: number;
  refused: number;
  reduced: number;
  oldest_unflushed_ms: number;
  journal_bytes: number;
  journal_discarded_bytes: number;
  disk_free_bytes: number;
  held_nano: number;
  leased_nano: number;
  waiting: number;
}

/** The metrics of a process: methods count events, `watch…` methods register gauges. */
export interface Metrics {
  registry: Registry;
  attempt(provider: string, outcome: string): void;
  /** An answer cost more than was reserved for it. */
  overrun(provider: string): void;
  /** A rule of money or streams was broken (`errors.ts`). */
  brokenRule(rule: AssertedRule): void;
  generation(facts: {
    model: string;
    provider: string;
    outcome: string;
    prompt_tokens: number;
    completion_tokens: number;
    cost_usd: number;
    first_token_s: number | undefined;
  }): void;
  request(facts: { operation: string; status: number; seconds: number }): void;
  /** A rate limit of the gateway refused a request. */
  rateLimited(limit: string): void;
  /** A content filter matched, `count` times (default 1). */
  contentFiltered(filter: string, action: string, count?: number): void;
  /** The content of `count` calls is not kept although their workspace wants it; with `stub`, ids, time, model and reason are. */
  contentsLost(count: number, reason: ContentLoss, kept: 'stub' | 'nothing'): void;
  /** Rows of a kind were deleted by a setting of `retention`. */
  retentionDeleted(kind: string, rows: number): void;
  /** The outcome of calls for a destination; `incomplete`: sent without a part that could not be built. */
  broadcast(destination: string, outcome: 'sent' | 'refused' | 'lost' | 'incomplete', count: number): void;
  streamOpened(): void;
  streamClosed(): void;
  /** A connection exceeded a limit: its setting's name. */
  connectionRefused(bound: string): void;
  /** Registers the gauge of open client connections. */
  watchConnections(count: () => number): void;
  /** Registers the gauges of the journal and the leases. */
  watchRecorder(state: () => RecorderState): void;
  /** Registers the gauges of the connection to the store. */
  watchStore(store: StoreState): void;
  /** A request was served while the store did not answer. */
  servedWithoutStore(): void;
  /** Registers the gauges of money in doubt. `read` asks the store, at most once in `doubt_read_ms`. If it fails, the last values stay. */
  watchDoubt(read: () => Promise<Doubt>): void;
  /** Registers the gauge of the memory that requests hold. */
  watchMemory(heldBytes: () => number): void;
  /** Registers the gauges of endpoints; `read` returns those with recent calls. */
  watchEndpoints(read: () => Iterable<EndpointState>): void;
}

/** Why the content of a call is not kept: it could not be built, sealed or written, too many waited, or the process ended. */
export type ContentLoss = 'build' | 'seal' | 'store' | 'overflow' | 'shutdown';

/** Money that may or may not have been spent, nano-USD. */
export interface Doubt {
  in_doubt_nano: number;
  booked_nano: number;
  estimated_nano: number;
}

/** The state of the connection to the store, for the gauges. */
export interface StoreState {
  isReachable(): boolean;
  /** Open connections. */
  connections(): number;
  clock: {
    /** The machine's clock minus the store's, in milliseconds. */
    readonly skew_ms: number;
    /** How often the difference has exceeded the limit. */
    readonly skews: number;
  };
}

/** The state of one endpoint. */
export interface EndpointState {
  endpoint: string;
  /** The success rate of the calls of the last five minutes, from 0 to 1; null if there are too few. */
  uptime: number | null;
  /** As listed: 0 is good, negative values are problems. */
  status: number;
}

interface Count {
  count: number;
}

/** The sums of generations of one model, provider and outcome since the counters were last read. */
interface GenerationCounts extends Count {
  prompt_tokens: number;
  completion_tokens: number;
  cost_usd: number;
}

const noCount = (): Count => ({ count: 0 });
const noGenerations = (): GenerationCounts => ({ count: 0, prompt_tokens: 0, completion_tokens: 0, cost_usd: 0 });

/** The value of a key; created if there is none. */
function getOrCreate<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
}

/** Creates the process's metrics, in a registry of their own. Labels are operations, models and providers; never keys. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  // prom-client sorts and joins the labels of every count. So counts are kept in nested maps, one level for each label, and
  // moved to the counters when these are read.
  const requests = new Map<string, Map<number, Count>>();
  const attempts = new Map<string, Map<string, Count>>();
  const generations = new Map<string, Map<string, Map<string, GenerationCounts>>>();
  function* eachGeneration() {
    for (const [model, ofModel] of generations) {
      for (const [provider, ofProvider] of ofModel) {
        for (const [outcome, cell] of ofProvider) yield { model, provider, outcome, cell };
      }
    }
  }
  new Counter({
    name: 'gateway_requests_total',
    help: 'HTTP requests by operation and status.',
    labelNames: ['operation', 'status'],
    registers,
    collect() {
      for (const [operation, statuses] of requests) {
        for (const [status, cell] of statuses) {
          this.inc({ operation, status }, cell.count);
          cell.count = 0;
        }
      }
    },
  });
  const duration = createDurations({
    name: 'gateway_request_seconds',
    help: 'Time from the request to the end of its answer.',
    label: 'operation',
    registry,
  });
  const firstToken = createDurations({
    name: 'gateway_first_token_seconds',
    help: 'Time from the request to the first token (to the answer, when it is not streamed).',
    label: 'provider',
    registry,
  });
  new Counter({
    name: 'gateway_generations_total',
    help: 'Finished generations by outcome.',
    labelNames: ['model', 'provider', 'outcome'],
    registers,
    collect() {
      for (const { model, provider, outcome, cell } of eachGeneration()) {
        this.inc({ model, provider, outcome }, cell.count);
        cell.count = 0;
      }
    },
  });
  new Counter({
    name: 'gateway_tokens_total',
    help: 'Tokens by direction.',
    labelNames: ['model', 'provider', 'direction'],
    registers,
    collect() {
      for (const { model, provider, cell } of eachGeneration()) {
        this.inc({ model, provider, direction: 'prompt' }, cell.prompt_tokens);
        this.inc({ model, provider, direction: 'completion' }, cell.completion_tokens);
        cell.prompt_tokens = 0;
        cell.completion_tokens = 0;
      }
    },
  });
  new Counter({
    name: 'gateway_cost_usd_total',
    help: 'Cost of generations, in USD.',
    labelNames: ['model', 'provider'],
    registers,
    collect() {
      for (const { model, provider, cell } of eachGeneration()) {
        this.inc({ model, provider }, cell.cost_usd);
        cell.cost_usd = 0;
      }
    },
  });
  new Counter({
    name: 'gateway_attempts_total',
    help: 'Attempts at upstreams by outcome.',
    labelNames: ['provider', 'outcome'],
    registers,
    collect() {
      for (const [provider, outcomes] of attempts) {
        for (const [outcome, cell] of outcomes) {
          this.inc({ provider, outcome }, cell.count);
          cell.count = 0;
        }
      }
    },
  });
  const overruns = new Counter({
    name: 'gateway_overruns_total',
    help: 'Answers that cost more than was reserved for them.',
    labelNames: ['provider'],
    registers,
  });
  const brokenRules = new Counter({
    name: 'gateway_broken_rules_total',
    help: 'Broken rules of money and streams: faults of the gateway. Money that is reserved for such a call stays reserved. Alert on any increase.',
    labelNames: ['rule'],
    registers,
  });
  // A zero, as for lost contents below.
  for (const rule of assertedRules) brokenRules.inc({ rule }, 0);
  const rateLimited = new Counter({
    name: 'gateway_rate_limited_total',
    help: 'Requests that a rate limit of the gateway refused.',
    labelNames: ['limit'],
    registers,
  });
  const connectionsRefused = new Counter({
    name: 'gateway_connections_refused_total',
    help: 'Client connections above a limit, which were closed or used only for a health probe.',
    labelNames: ['bound'],
    registers,
  });
  const contentsLost = new Counter({
    name: 'gateway_logged_contents_lost_total',
    help: 'Calls whose content could not be kept, by reason, and by whether a stub is kept instead. Alert on any increase.',
    labelNames: ['reason', 'kept'],
    registers,
  });
  // An alert sees the first increase only if there was a zero before it.
  for (const reason of ['build', 'seal', 'store', 'overflow', 'shutdown'] satisfies ContentLoss[]) {
    for (const kept of ['stub', 'nothing']) contentsLost.inc({ reason, kept }, 0);
  }
  const retentionDeleted = new Counter({
    name: 'gateway_retention_deleted_total',
    help: 'Rows that the settings of retention have deleted: generations, audit records and windows of limits that have ended.',
    labelNames: ['kind'],
    registers,
  });
  const broadcast = new Counter({
    name: 'gateway_broadcast_generations_total',
    help: 'Calls for destinations: sent, refused by the destination, lost because it did not accept them in time, or incomplete because a part could not be built.',
    labelNames: ['destination', 'outcome'],
    registers,
  });
  const contentFiltered = new Counter({
    name: 'gateway_content_filtered_total',
    help: 'Matches of content filters, by filter and action.',
    labelNames: ['filter', 'action'],
    registers,
  });
  const withoutStore = new Counter({
    name: 'gateway_served_without_store_total',
    help: 'Requests that were accepted while the store did not answer.',
    registers,
  });
  const streams = new Gauge({ name: 'gateway_open_streams', help: 'Streams open to clients.', registers });
  streams.set(0);
  new Gauge({ name: 'gateway_processes', help: 'Processes that serve requests.', registers }).set(1);

  return {
    registry,
    attempt(provider, outcome) {
      getOrCreate(
        getOrCreate(attempts, provider, () => new Map()),
        outcome,
        noCount,
      ).count += 1;
    },
    overrun: (provider) => overruns.inc({ provider }),
    brokenRule: (rule) => brokenRules.inc({ rule }),
    rateLimited: (limit) => rateLimited.inc({ limit }),
    contentFiltered: (filter, action, count = 1) => contentFiltered.inc({ filter, action }, count),
    generation({ model: name, provider, outcome, prompt_tokens, completion_tokens, cost_usd, first_token_s }) {
      // A client can name any number of models if a provider accepts any.
      const isShown = generations.size < METRIC_LABEL_VALUES_MAX || generations.has(name);
      const ofModel = getOrCreate(generations, isShown ? name : 'other', () => new Map());
      const cell = getOrCreate(
        getOrCreate(ofModel, provider, () => new Map()),
        outcome,
        noGenerations,
      );
      cell.count += 1;
      cell.prompt_tokens += prompt_tokens;
      cell.completion_tokens += completion_tokens;
      cell.cost_usd += cost_usd;
      if (first_token_s !== undefined) firstToken.observe(provider, first_token_s);
    },
    request({ operation, status, seconds }) {
      getOrCreate(
        getOrCreate(requests, operation, () => new Map()),
        status,
        noCount,
      ).count += 1;
      duration.observe(operation, seconds);
    },
    contentsLost: (count, reason, kept) => contentsLost.inc({ reason, kept }, count),
    retentionDeleted: (kind, rows) => retentionDeleted.inc({ kind }, rows),
    broadcast: (destination, outcome, count) => broadcast.inc({ destination, outcome }, count),
    servedWithoutStore: () => withoutStore.inc(),
    streamOpened: () => streams.inc(),
    streamClosed: () => streams.dec(),
    watchRecorder(state) {
      const gauge = (
        name: string,
        help: string,
        read: (now: RecorderState) => number,
        aggregator: 'sum' | 'max' | 'min' = 'sum',
      ) =>
        new Gauge({
          name,
          help,
          aggregator,
          registers,
          collect() {
            this.set(read(state()));
          },
        });
      gauge('gateway_journal_unflushed_records', 'Outcomes not yet acknowledged by the store.', (now) => now.unflushed);
      gauge(
        'gateway_flush_lag_seconds',
        'Age of the oldest outcome not yet acknowledged by the store.',
        (now) => now.oldest_unflushed_ms / 1000,
        'max',
      );
      gauge('gateway_journal_refused_records', 'Outcomes that the store refuses.', (now) => now.refused);
      gauge(
        'gateway_journal_reduced_records',
        'Outcomes since the start that were stored without values that the store refuses. Their cost is complete.',
        (now) => now.reduced,
      );
      gauge('gateway_journal_bytes', 'Size of the journal on disk.', (now) => now.journal_bytes);
      gauge(
        'gateway_journal_given_up_bytes',
        'Journal deleted early because the disk was short of space: a store that is restored to an earlier time does not get it again.',
        (now) => now.journal_discarded_bytes,
      );
      gauge(
        'gateway_journal_disk_free_bytes',
        "Free space of the journal's disk.",
        (now) => now.disk_free_bytes,
        'min',
      );
      gauge(
        'gateway_ledger_held_usd',
        'Money reserved for running requests, over all limits.',
        (now) => now.held_nano / 1e9,
      );
      gauge(
        'gateway_ledger_leased_usd',
        'Money reserved for this node, over all limits, including what running requests hold.',
        (now) => now.leased_nano / 1e9,
      );
      gauge(
        'gateway_ledger_waiting_requests',
        'Requests that wait for a reservation in a limit.',
        (now) => now.waiting,
      );
    },
    connectionRefused: (bound) => connectionsRefused.inc({ bound }),
    watchConnections(count) {
      new Gauge({
        name: 'gateway_connections',
        help: 'Open connections of clients.',
        registers,
        collect() {
          this.set(count());
        },
      });
    },
    watchMemory(heldBytes) {
      new Gauge({
        name: 'gateway_request_memory_bytes',
        help: "Memory that requests and answers use of their share, by the gateway's own count.",
        registers,
        collect() {
          this.set(heldBytes());
        },
      });
    },
    watchEndpoints(read) {
      const gauge = (
        name: string,
        help: string,
        aggregator: 'average' | 'min',
        value: (state: EndpointState) => number | null,
      ) =>
        new Gauge({
          name,
          help,
          labelNames: ['endpoint'],
          aggregator,
          registers,
          collect() {
            this.reset();
            let count = 0;
            for (const state of read()) {
              const current = value(state);
              if (current === null) continue;
              count += 1;
              if (count > METRIC_LABEL_VALUES_MAX) return;
              this.set({ endpoint: state.endpoint }, current);
            }
          },
        });
      gauge(
        'gateway_endpoint_uptime_ratio',
        "Share of the calls of the last five minutes that an endpoint answered, with the gateway's own accounts, on all nodes.",
        // Every process has the counts of all.
        'average',
        ({ uptime }) => uptime,
      );
      gauge(
        'gateway_endpoint_status',
        'Status of an endpoint as it is listed: 0 is good, negative values are problems; the worst value of all processes.',
        'min',
        ({ status }) => status,
      );
    },
    watchStore({ isReachable, connections, clock }) {
      const gauge = (name: string, help: string, aggregator: 'sum' | 'min' | 'max', read: () => number) =>
        new Gauge({
          name,
          help,
          aggregator,
          registers,
          collect() {
            this.set(read());
          },
        });
      gauge('gateway_store_reachable', 'Whether the store answers requests: 1, or 0.', 'min', () =>
        Number(isReachable()),
      );
      gauge(
        'gateway_store_connections',
        'Connections to PostgreSQL, without the one for notifications.',
        'sum',
        connections,
      );
      gauge(
        'gateway_store_clock_skew_seconds',
        "Difference between the clock of this machine and the store's.",
        'max',
        () => Math.abs(clock.skew_ms) / 1000,
      );
      gauge(
        'gateway_store_clock_skews_total',
        "How often the clock of this machine differed from the store's by more than two seconds.",
        'sum',
        () => clock.skews,
      );
    },
    watchDoubt(read) {
      let readAt = Number.NEGATIVE_INFINITY;
      let reading: Promise<Doubt | undefined> = Promise.resolve(undefined);
      // One query serves all gauges, for a while.
      const readSeldom = () => {
        const now = performance.now();
        if (now - readAt < DOUBT_READ_MS) return reading;
        readAt = now;
        const late = sleep(limits.readiness_ms_max, undefined, { ref: false });
        reading = Promise.race([read().catch(() => undefined), late]);
        return reading;
      };
      const gauge = (name: string, help: string, value: (doubt: Doubt) => number) =>
        new Gauge({
          name,
          help,
          // All processes read the same values.
          aggregator: 'max',
          registers,
          async collect() {
            const doubt = await readSeldom();
            if (doubt !== undefined) this.set(value(doubt) / 1e9);
          },
        });
      gauge(
        'gateway_ledger_in_doubt_usd',
        'Money reserved for nodes without a recent sign of life, over all limits; for all nodes of the store.',
        (doubt) => doubt.in_doubt_nano,
      );
      gauge(
        'gateway_ledger_booked_usd',
        'Money booked as spent for lost nodes, over all limits, until they come back or are released.',
        (doubt) => doubt.booked_nano,
      );
      gauge(
        'gateway_ledger_estimated_usd',
        'Estimated cost of generations whose end is unknown, as far as no operator corrected it.',
        (doubt) => doubt.estimated_nano,
      );
    },
  };
}
