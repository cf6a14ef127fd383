/**
 * The output of a test run: its progress, each failure in full, and the numbers at the end; the slowest files on
 * request.
 */
import { existsSync } from 'node:fs';
import { DefaultReporter, type TestModule, type TestSpecification } from 'vitest/node';

/** Without a terminal, a line at this interval. */
const LINE_MS = 20_000;
/** The shortest time between two changes of a terminal's line. */
const REDRAW_MS = 100;
const SHARED = new URL('../../shared/transcripts/', import.meta.url);

export default class ProgressReporter extends DefaultReporter {
  readonly #tier = process.env['TEST_TIER'] ?? 'first';
  #files = 0;
  #done = 0;
  #tests = 0;
  #failed = 0;
  #drawnAt = 0;

  constructor() {
    super({ summary: false });
  }

  override onTestRunStart(specifications: readonly TestSpecification[]): void {
    super.onTestRunStart(specifications);
    this.#files = specifications.length;
    this.#drawnAt = this.start;
  }

  override onTestCaseResult(testCase: Parameters<DefaultReporter['onTestCaseResult']>[0]): void {
    const { state } = testCase.result();
    if (state !== 'skipped') this.#tests += 1;
    if (state === 'failed') {
      this.#failed += 1;
      this.#erase();
      this.log(`FAILED ${testCase.module.relativeModuleId} > ${testCase.fullName}`);
    }
    super.onTestCaseResult(testCase);
    this.#draw();
  }

  override onTestModuleEnd(testModule: TestModule): void {
    this.#done += 1;
    if (testModule.state() === 'failed') this.#erase();
    super.onTestModuleEnd(testModule);
    this.#draw();
  }

  /** No line for each file: failures are shown in full at the end. */
  override printTestModule(): void {}

  override onTestRunEnd(...args: Parameters<DefaultReporter['onTestRunEnd']>): void {
    this.#erase();
    this.#files = 0;
    super.onTestRunEnd(...args);
    const [modules] = args;
    const slowest = Number(process.env['TEST_SLOWEST'] ?? 0);
    if (slowest > 0) this.#printSlowest(modules, slowest);
    for (const hint of this.#hints()) this.log(hint);
  }

  #printSlowest(modules: readonly TestModule[], count: number): void {
    const timed = modules.map((module) => {
      const { duration, collectDuration, setupDuration } = module.diagnostic();
      return { name: module.relativeModuleId, ms: duration + collectDuration + setupDuration };
    });
    this.log('The slowest files:');
    for (const { name, ms } of timed.sort((a, b) => b.ms - a.ms).slice(0, count)) {
      this.log(`${(ms / 1000).toFixed(1).padStart(8)} s  ${name}`);
    }
  }

  /** What was left out, each item once. */
  *#hints(): Generator<string> {
    if (process.env['TEST_DATABASE_URL'] === undefined) {
      yield 'The PostgreSQL variants were left out: TEST_DATABASE_URL names no server.';
    }
    if (this.#tier === 'first') yield 'This was the first tier; `npm run test:all` runs everything.';
    else if (!existsSync(SHARED)) {
      yield 'The full matrices ran on the recordings of test/recordings alone: ../shared/transcripts is missing.';
    }
  }

  #line(): string {
    const seconds = Math.round((performance.now() - this.start) / 1000);
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    return `${this.#done} of ${this.#files} files, ${this.#tests} tests, ${this.#failed} failed, ${time}`;
  }

  #draw(): void {
    const now = performance.now();
    if (this.#files === 0 || now - this.#drawnAt < (this.isTTY ? REDRAW_MS : LINE_MS)) return;
    this.#drawnAt = now;
    if (this.isTTY) process.stdout.write(`\r\u001b[K${this.#line()}`);
    else this.log(this.#line());
  }

  #erase(): void {
    if (this.isTTY && this.#drawnAt > 0) process.stdout.write('\r\u001b[K');
  }
}
