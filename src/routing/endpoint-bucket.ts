import { Sketch } from './sketch.ts';

/** Counts of outcomes. Calls with own credentials of organizations are not counted. */
export interface Counts {
  successes: number;
  errors: number;
  /** Neither a success nor an error. */
  rate_limited: number;
  tool_calls: number;
  tool_calls_valid: number;
}

export function zeroCounts(): Counts {
  return { successes: 0, errors: 0, rate_limited: 0, tool_calls: 0, tool_calls_valid: 0 };
}

/** Times of streamed answers, and of whole ones, whose first token is not visible: theirs are of the whole answer. */
export type SketchName = 'latency' | 'throughput' | 'whole_latency' | 'whole_throughput';

/** The measurements of one attempt. Without a result, the client cancelled it or its content was refused. */
export interface Sample {
  result?: 'success' | 'error' | 'rate_limited' | undefined;
  is_streamed?: boolean | undefined;
  latency_ms?: number | undefined;
  tokens_per_second?: number | undefined;
  tool_calls?: number | undefined;
  tool_calls_valid?: number | undefined;
}

/** The counts of one process for one endpoint in one minute, or in a quarter of an hour without sketches. */
export interface BucketRow extends Counts {
  endpoint_id: string;
  /** In minutes. */
  span: number;
  /** Minutes since 1970. */
  start: number;
  /** Rises with each sample, which shows which samples a row includes. */
  version: number;
  /** Packed. */
  sketches: Partial<Record<SketchName, string>>;
}

/** Collects the samples of one row. */
export class Bucket {
  readonly place: { endpoint_id: string; span: number; start: number };
  readonly counts: Counts = zeroCounts();
  version = 0;
  #live: Map<SketchName, Sketch> | undefined;
  /** `#live` in packed form once nothing is added any more: much smaller. */
  #packed: Map<SketchName, string> | undefined;

  constructor(place: { endpoint_id: string; span: number; start: number }) {
    this.place = place;
  }

  get span(): number {
    return this.place.span;
  }

  get start(): number {
    return this.place.start;
  }

  count({
    result,
    is_streamed: isStreamed,
    latency_ms: latencyMs,
    tokens_per_second: tokensPerSecond,
    tool_calls: toolCalls,
    tool_calls_valid: toolCallsValid,
  }: Sample): void {
    const { counts } = this;
    this.version += 1;
    if (result === 'success') counts.successes += 1;
    else if (result === 'error') counts.errors += 1;
    else if (result === 'rate_limited') counts.rate_limited += 1;
    counts.tool_calls += toolCalls ?? 0;
    counts.tool_calls_valid += toolCallsValid ?? 0;
    if (this.place.span !== 1) return;
    if (latencyMs !== undefined) this.#add(isStreamed ? 'latency' : 'whole_latency', latencyMs);
    if (tokensPerSecond !== undefined) this.#add(isStreamed ? 'throughput' : 'whole_throughput', tokensPerSecond);
  }

  #add(name: SketchName, value: number): void {
    this.#live ??= new Map();
    if (this.#packed !== undefined) this.#unpack(this.#live, this.#packed);
    const live = this.#live;
    const known = live.get(name);
    if (known !== undefined) {
      known.add(value);
      return;
    }
    const created = new Sketch();
    created.add(value);
    live.set(name, created);
  }

  #unpack(live: Map<SketchName, Sketch>, packed: ReadonlyMap<SketchName, string>): void {
    for (const [name, text] of packed) {
      const sketch = new Sketch();
      sketch.mergePacked(text);
      live.set(name, sketch);
    }
    this.#packed = undefined;
  }

  /** Packs the sketches once the bucket's time is over. */
  compact(): void {
    if (this.#live === undefined) return;
    this.#packed = new Map([...this.#live].map(([name, sketch]) => [name, sketch.pack()]));
    this.#live = undefined;
  }

  eachSketch(each: (name: SketchName, sketch: Sketch) => void): void {
    if (this.#live !== undefined) for (const [name, sketch] of this.#live) each(name, sketch);
  }

  eachPacked(each: (name: SketchName, text: string) => void): void {
    if (this.#packed !== undefined) for (const [name, text] of this.#packed) each(name, text);
  }

  row(): BucketRow {
    const sketches: BucketRow['sketches'] = {};
    this.eachSketch((name, sketch) => {
      sketches[name] = sketch.pack();
    });
    this.eachPacked((name, text) => {
      sketches[name] = text;
    });
    return { ...this.place, ...this.counts, version: this.version, sketches };
  }
}
