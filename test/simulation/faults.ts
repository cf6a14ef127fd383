import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { LAST_MONEY_STEP, LOSABLE_STEP, UNSAFE_STEP } from './steps.ts';
import { ENTRIES, SOURCES } from './subject.ts';
import type { RunOptions } from './world.ts';

/** A mistake that a developer could make in the sources. */
export interface Fault {
  name: string;
  /** In how many of its runs the fault was found when the table was made. */
  paper: string;
  /** Only for the command. */
  is_slow?: boolean;
  /** The rules that report it. */
  options?: RunOptions;
  /** The first seed that finds it, if that is not the first of all. */
  seed?: number;
  edits: { file: string; text: string; replacement: string }[];
}

const LEASES = 'ledger/leases/leases.ts';
const GRANTS = 'ledger/leases/grants.ts';
const BOOK = 'ledger/leases/lease-book.ts';
const JOURNAL = 'ledger/journal/journal.ts';
const NODE = 'ledger/node.ts';
const START_NODE = 'ledger/start-node.ts';
const OUTCOMES = 'ledger/outcomes.ts';
const PIPE = 'ledger/pipe.ts';
const SEGMENTS = 'ledger/journal/segments.ts';
const LOST = 'storage/lost-leases.ts';
const RETENTION = 'ledger/journal/retention.ts';
const REPLAY = 'ledger/journal/replay.ts';
const STORE = 'storage/ledger.ts';
const CALLS = 'storage/call-statements.ts';
const WINDOWS = 'storage/window-statements.ts';
const FREE = "const FREE = '(b.limit_nano - ledger_windows.spent - v.cost - ledger_windows.leased + v.cover)';";

const SILENT = `const silent = at - 3000;
        await sql\`UPDATE ledger_windows SET leased = leased - (SELECT COALESCE(SUM(l.amount), 0) FROM ledger_leases l
          JOIN ledger_nodes n ON n.id = l.node_id WHERE n.seen_at < \${silent}
          AND l.budget_id = ledger_windows.budget_id AND l.window_start = ledger_windows.window_start)\`.execute(queries);
        await sql\`DELETE FROM ledger_leases WHERE node_id IN (SELECT id FROM ledger_nodes WHERE seen_at < \${silent})\`.execute(queries);`;

/** The faults that the simulation must find. */
export const FAULTS: Fault[] = [
  {
    name: 'replay forgotten',
    seed: 6,
    paper: '100 %',
    edits: [
      {
        file: START_NODE,
        text: 'const left = replay(segments);',
        replacement: 'const left = { ...replay(segments), outcomes: [], unknown: [] };',
      },
    ],
  },
  {
    name: 'unknown outcome charged nothing',
    seed: 6,
    paper: '100 %',
    edits: [{ file: REPLAY, text: 'report?.cost_nano ?? assumedCost(unfinished, policy);', replacement: '0;' }],
  },
  {
    name: 'unknown outcome of a caller without limits charged nothing',
    paper: 'not in it',
    edits: [{ file: 'ledger/journal/replay.ts', text: 'least: record.least,', replacement: 'least: undefined,' }],
  },
  {
    name: 'batch of a lost answer under a new number, no generation key',
    seed: 40,
    paper: '100 %',
    edits: [
      {
        file: PIPE,
        text: 'await this.#options.store.settle(batch);',
        replacement: 'await this.#options.store.settle(refusals === 1 ? batch : { ...batch, number: ++this.#number });',
      },
      {
        file: CALLS,
        text: 'insertGenerations.step(rows, { must_change: true });',
        replacement: 'insertGenerations.step(rows);',
      },
    ],
  },
  {
    name: 'second attempt reuses the hold of a billed first one',
    seed: 11,
    paper: '100 %',
    edits: [{ file: BOOK, text: 'line.share += costNano;', replacement: 'line.share += 0;' }],
  },
  {
    name: 'admission one unit over the lease',
    seed: 39,
    paper: '100 %',
    edits: [
      {
        file: GRANTS,
        text: 'available = Math.min(available, roomOf(line));',
        replacement: 'available = Math.min(available, roomOf(line) + 1);',
      },
    ],
  },
  {
    name: 'whole lease returned, holds included',
    paper: '100 %',
    edits: [
      {
        file: LEASES,
        text: 'const idle = freeOf(lease);\n      if (!(',
        replacement: 'const idle = lease.stored - lease.pending - lease.returning;\n      if (!(',
      },
    ],
  },
  {
    name: 'grant from a value read earlier',
    seed: 36,
    paper: '100 %',
    edits: [
      {
        file: WINDOWS,
        text: FREE,
        replacement: FREE.replace('ledger_windows.leased', '(ledger_windows.leased - ledger_windows.granted)'),
      },
    ],
  },
  {
    name: 'lowered limit ignores leases',
    seed: 17,
    paper: '82 %',
    edits: [
      {
        file: WINDOWS,
        text: FREE,
        replacement: FREE.replace(
          'ledger_windows.leased + v.cover',
          '(CASE WHEN b.version > 1 THEN 0 ELSE ledger_windows.leased - v.cover END)',
        ),
      },
    ],
  },
  {
    name: 'hold stays on the first budget when another refuses',
    seed: 8,
    paper: '99 %',
    edits: [
      {
        file: LEASES,
        text: 'const refusal = this.grants.refusal(request, lines);',
        replacement:
          'const refusal = this.grants.refusal(request, lines);\n        const one = lines[0]?.lease;\n        if (one !== undefined && freeOf(one) >= request.least_nano) one.held += request.least_nano;',
      },
    ],
  },
  {
    name: 'hold of a refused call not released',
    paper: '91 %',
    edits: [
      {
        file: NODE,
        text: '(hold) => this.#outcomes.release(hold);',
        replacement: '() => {};',
      },
    ],
  },
  {
    name: 'lease of a silent node freed by time',
    seed: 20,
    paper: '98 %',
    edits: [
      {
        file: STORE,
        text: 'const missed = await transact(',
        replacement: `${SILENT}\n        const missed = await transact(`,
      },
    ],
  },
  {
    name: 'pending dropped at the send',
    paper: '98 %',
    edits: [
      {
        file: LEASES,
        text: 'for (const charge of charges) requestOf(this.book.of(charge.budget_id, charge.window_start));',
        replacement:
          'for (const charge of charges) {\n        requestOf(this.book.of(charge.budget_id, charge.window_start));\n        this.book.of(charge.budget_id, charge.window_start).pending -= charge.cover;\n      }',
      },
      {
        file: BOOK,
        text: 'this.of(budget_id, window_start).pending -= cover;',
        replacement: 'this.of(budget_id, window_start).pending -= 0 * cover;',
      },
    ],
  },
  {
    name: 'attempt not durable before the send',
    paper: '97 %',
    edits: [
      {
        file: NODE,
        text: '    return this.#journal.attempt(this.#entryOf(hold, hold.attempt)).then(',
        replacement: `    void this.#journal.attempt(this.#entryOf(hold, hold.attempt)).catch(() => {});
    return Promise.resolve().then(`,
      },
    ],
  },
  {
    name: 'less instead of less or equal in the grant',
    paper: '88 %',
    edits: [{ file: WINDOWS, text: '$' + '{FREE} < v.need', replacement: '$' + '{FREE} <= v.need' }],
  },
  {
    name: 'charge in the window of the end of the request',
    seed: 23,
    paper: '83 %',
    edits: [
      {
        file: BOOK,
        text: 'const { budget, window_start, amount: held } = line;',
        replacement:
          "const { budget, amount: held } = line;\n      const window_start = [...(this.#byBudget.get(budget.id)?.keys() ?? [])].sort().at(-1) ?? '';",
      },
      {
        file: BOOK,
        text: 'const lease = this.leaseOf(line);',
        replacement: 'const lease = this.of(budget.id, window_start);',
      },
    ],
  },
  {
    name: 'no sync, and leases handed back after a power loss',
    seed: 6,
    paper: '82 %',
    edits: [
      {
        file: 'ledger/journal/journal.ts',
        text: "if (durable && this.#options.sync === 'os') durable.resolve();",
        replacement: 'if (durable) durable.resolve();',
      },
    ],
  },
  {
    name: 'return before the outcome that freed the money is in a batch',
    seed: 31,
    paper: '71 %',
    options: {
      journal_sync: 'group',
      set_backs: false,
      small: false,
      bursts: true,
      aim: LOSABLE_STEP,
      requests: 2_500,
    },
    edits: [{ file: LEASES, text: 'if (isLast) this.#return(requestOf);', replacement: 'this.#return(requestOf);' }],
  },
  {
    name: 'extension not journaled',
    seed: 3,
    paper: '65 %',
    options: { mode: 'sliced' },
    edits: [
      {
        file: NODE,
        text: 'await this.#journal.extend(this.#entryOf(hold, hold.attempt));',
        replacement: 'await Promise.resolve();',
      },
    ],
  },
  {
    name: 'no call-back of idle leases',
    seed: 4,
    paper: '29 %',
    edits: [
      {
        file: LEASES,
        text: '!(lease.wanted || this.grants.isDraining || this.book.isIdle(lease))',
        replacement: '!(this.grants.isDraining || this.book.isIdle(lease))',
      },
    ],
  },
  {
    name: 'batch of a lost answer forgotten',
    seed: 4,
    paper: '11 %',
    edits: [
      {
        file: PIPE,
        text: '        if (isCertain && (await this.#divide(error))) return;',
        replacement: '        this.#queue.unshift(...this.#flying);\n        this.#flying = [];\n        return;',
      },
    ],
  },
  {
    name: 'segment deleted before its settlement is durable',
    seed: 36,
    paper: 'not in it',
    options: { small: true, aim: 'segment put away' },
    edits: [{ file: SEGMENTS, text: 'if (settled.length > 0) await sync();', replacement: 'void sync;' }],
  },
  {
    name: 'unknown outcomes after a power loss forgotten',
    seed: 24,
    paper: 'not in it',
    options: { journal_sync: 'os' },
    edits: [
      {
        file: NODE,
        text: 'this.#leases.book.freezeDoubtful(last?.frozen ?? [], inDoubt);',
        replacement: 'this.#leases.book.freezeDoubtful([], inDoubt);',
      },
    ],
  },
  {
    name: 'records that are sent again to a store are not pending',
    seed: 24,
    paper: 'not in it',
    options: { set_backs: true },
    edits: [
      {
        file: OUTCOMES,
        text: 'this.#options.book.addPending(settle.charges);\n    this.#queue(settle);',
        replacement: 'this.#queue(settle);',
      },
    ],
  },
  {
    name: 'a store that was set back does not get its windows again',
    seed: 3,
    paper: 'not in it',
    options: { set_backs: true },
    edits: [
      { file: BOOK, text: 'lease.is_new = true;', replacement: '' },
      { file: STORE, text: "if (missed !== undefined && !opensAll) return { is: 'window_missing' };", replacement: '' },
    ],
  },
  {
    name: '402 although the store has not answered',
    seed: 40,
    paper: 'not in it',
    edits: [{ file: LEASES, text: 'waiter.isAnswered ? this', replacement: 'waiter.requestedIn > 0 ? this' }],
  },
  {
    name: 'metered amount charged also to strict budgets',
    seed: 4,
    paper: 'not in it',
    options: { unknown_outcome: 'metered' },
    edits: [{ file: REPLAY, text: "policy === 'metered' && is_soft", replacement: "policy === 'metered'" }],
  },
  {
    name: 'metered amount of a call without limits ignored, with disks that are full at times',
    seed: 10,
    paper: 'not in it',
    options: { full_disks: true },
    edits: [
      { file: REPLAY, text: 'Math.max(knownNano ?? 0, least?.cost_nano ?? 0)', replacement: 'least?.cost_nano ?? 0' },
    ],
  },
  {
    name: 'metered amount ignored',
    seed: 2,
    paper: 'not in it',
    options: { mode: 'soft', unknown_outcome: 'metered' },
    edits: [
      { file: REPLAY, text: 'const knownNano = metered?.cost_nano;', replacement: 'const knownNano = metered && 0;' },
    ],
  },
  {
    name: 'provider’s report ignored',
    seed: 9,
    paper: 'not in it',
    options: { lookups: true },
    edits: [{ file: REPLAY, text: 'report?.cost_nano ?? assumedCost(', replacement: 'assumedCost(' }],
  },
  {
    name: 'provider’s report replaces the cost of earlier attempts',
    seed: 4,
    paper: 'not in it',
    options: { lookups: true },
    edits: [
      {
        file: REPLAY,
        text: 'const amount = held - granted +',
        replacement: 'const amount = (report ? 0 : held - granted) +',
      },
    ],
  },
  {
    name: 'own accounts count against every budget',
    paper: 'not in it',
    edits: [{ file: GRANTS, text: 'return is_byok ? budgets.filter', replacement: 'return !budgets ? budgets.filter' }],
  },
  {
    name: 'windows by the clock of the machine',
    paper: 'not in it',
    options: { clock_steps: true },
    edits: [
      {
        file: NODE,
        text: 'now: () => this.#time.now(),',
        replacement: 'now: () => clock.now(),',
      },
    ],
  },
  {
    name: 'a refusal is remembered against smaller requests',
    paper: 'not in it',
    is_slow: true,
    edits: [
      { file: GRANTS, text: 'return request.least_nano >= lease.refused_need && roomOf', replacement: 'return roomOf' },
    ],
  },
  {
    name: 'a refusal is remembered for too long',
    paper: 'not in it',
    is_slow: true,
    edits: [{ file: 'limits.ts', text: '  refusal_ms: 100,', replacement: '  refusal_ms: 5_000,' }],
  },
  {
    name: 'checksum not checked',
    seed: 2,
    paper: 'not in it',
    edits: [
      {
        file: 'ledger/journal/journal-format.ts',
        text: 'if (crc32(json) !== Number.parseInt(header.slice(9, 17), 16)) return undefined;',
        replacement: '',
      },
    ],
  },
  {
    name: 'an older attempt is rewritten after a newer one',
    seed: 40,
    paper: 'not in it',
    options: { small: true, retries: true },
    edits: [
      {
        file: 'ledger/journal/carry.ts',
        text: 'const newest = segments.newestAttempt(record.id) ?? segment;',
        replacement: 'const newest = segment;',
      },
    ],
  },
  {
    name: 'another file is synced than that of the attempt',
    seed: 50,
    paper: 'not in it',
    options: { journal_sync: 'group', small: true, aim: UNSAFE_STEP },
    edits: [
      {
        file: 'ledger/journal/journal.ts',
        text: 'if (file !== undefined) await this.#disk.sync(file);',
        replacement: 'if (this.#file !== undefined) await this.#disk.sync(this.#file);',
      },
    ],
  },
  {
    name: 'segments deleted out of order',
    paper: 'not in it',
    options: { small: true, retries: true, requests: 1_500 },
    edits: [
      {
        file: SEGMENTS,
        text: 'this.#list.slice(0, open === -1 ? undefined : open).filter((segment) => !segment.settled);',
        replacement:
          'open < -1 ? [] : this.#list.filter((one) => one.closed_at !== undefined && one.unsettled === 0 && !one.settled);',
      },
    ],
  },
  {
    name: 'a lease that has money is forgotten',
    seed: 6,
    paper: 'not in it',
    options: { small: true },
    edits: [{ file: BOOK, text: 'const empty = lease.stored === 0 && lease', replacement: 'const empty = lease' }],
  },
  {
    name: 'a file is read that continues data lost in a power loss',
    seed: 44,
    paper: 'not in it',
    options: { journal_sync: 'os', small: true, aim: LAST_MONEY_STEP, requests: 2_500 },
    edits: [{ file: REPLAY, text: '      lost.add(segment.name);\n      continue;\n', replacement: '' }],
  },
  {
    name: 'the settled part of a lost node’s lease is not spent',
    paper: 'not in it',
    options: { books_lost: true },
    edits: [
      {
        file: LOST,
        text: '{ spent: settled + lease.amount, leased: -settled - lease.amount }',
        replacement: '{ spent: lease.amount, leased: -settled - lease.amount }',
      },
    ],
  },
  {
    name: 'the settled part of a lease never reaches its window',
    paper: 'not in it',
    edits: [
      {
        file: WINDOWS,
        text: 'spent = ledger_windows.spent + v.cost + COALESCE(l.settled, 0)',
        replacement: 'spent = ledger_windows.spent + v.cost',
      },
    ],
  },
  {
    name: 'a window with little money left is not marked',
    paper: 'not in it',
    edits: [{ file: WINDOWS, text: `    scarce = \${SCARCE}\n`, replacement: '    scarce = 0\n' }],
  },
  {
    name: 'a claim does not mark its window',
    seed: 13,
    paper: 'not in it',
    edits: [{ file: WINDOWS, text: `((\${CLAIMANT}) <> '' OR `, replacement: '(' }],
  },
  {
    name: 'the settled part of a lease reaches its window twice',
    paper: 'not in it',
    edits: [{ file: WINDOWS, text: 'amount = excluded.amount, settled = 0', replacement: 'amount = excluded.amount' }],
  },
  {
    name: 'only the lease is charged although money is returned with the charge',
    seed: 2,
    paper: 'not in it',
    edits: [{ file: WINDOWS, text: ' && cost === cover && own', replacement: ' && own' }],
  },
  {
    name: 'the holds of a lost node are freed instead of spent',
    seed: 13,
    paper: 'not in it',
    options: { books_lost: true },
    edits: [
      {
        file: LOST,
        text: '{ spent: settled + lease.amount, leased: -settled - lease.amount }',
        replacement: '{ spent: settled, leased: -settled - lease.amount }',
      },
    ],
  },
  {
    name: 'a node that returns is charged in addition to its booked amount',
    seed: 13,
    paper: 'not in it',
    options: { books_lost: true },
    edits: [{ file: STORE, text: 'await restoreLeases(tx, node);', replacement: '' }],
  },
  {
    name: 'the booked amount is freed when the node returns',
    seed: 13,
    paper: 'not in it',
    options: { books_lost: true },
    edits: [
      {
        file: LOST,
        text: '{ spent: -lease.amount, leased: lease.amount }',
        replacement: '{ spent: -lease.amount, leased: 0 }',
      },
    ],
  },
  {
    name: 'the booked amount is returned at each return of the node',
    seed: 13,
    paper: 'not in it',
    options: { books_lost: true },
    edits: [
      {
        file: LOST,
        text: ".deleteFrom('ledger_lost_leases')\n    .where('node_id', '=', node)\n    .returning(['budget_id', 'window_start', 'amount'])",
        replacement:
          ".selectFrom('ledger_lost_leases')\n    .where('node_id', '=', node)\n    .select(['budget_id', 'window_start', 'amount'])",
      },
    ],
  },
  {
    name: 'a full disk deletes a segment that is not settled',
    seed: 30,
    paper: 'not in it',
    options: { full_disks: true, small: true },
    edits: [{ file: RETENTION, text: 'oldest?.settled && oldest', replacement: 'oldest && oldest' }],
  },
  {
    name: 'batches pass in the epoch of a release',
    seed: 12,
    paper: 'not in it',
    options: { set_backs: true },
    edits: [
      { file: STORE, text: " AND instance <> ''\n", replacement: '\n' },
      { file: STORE, text: " || (epoch === batch.epoch && instance === '')", replacement: '' },
    ],
  },
  {
    name: 'records that the store lacks are forgotten in a crash',
    seed: 3,
    paper: 'not in it',
    options: { set_backs: true },
    edits: [
      { file: SEGMENTS, text: 'this.disk.replace(join(this.dir, OWED), JSON.stringify(position))', replacement: '{}' },
    ],
  },
  {
    name: 'an outcome that a full disk refused is not written again',
    seed: 539,
    paper: 'not in it',
    options: { full_disks: true },
    edits: [{ file: JOURNAL, text: 'this.#refused = this.#refused.concat(outcomes);', replacement: '' }],
  },
];

/** The files that a fault changes, with the change. Fails if a text to change does not occur exactly once. */
export function faultyFiles({ name, edits }: Fault): Map<string, string> {
  const files = new Map<string, string>();
  for (const { file, text, replacement } of edits) {
    const parts = (files.get(file) ?? readFileSync(join(SOURCES, file), 'utf8')).split(text);
    if (parts.length !== 2) throw new Error(`The fault "${name}" finds its text ${parts.length - 1} times in ${file}`);
    files.set(file, parts.join(replacement));
  }
  return files;
}

/** The sources of the ledger and its store. */
const SUBJECT = ['schemas', 'accounts', 'guardrails', 'ledger', 'storage', 'errors.ts', 'limits.ts'];

/** For each file of the subject, the files of the subject that import it. */
function importersOf(): Map<string, string[]> {
  const importers = new Map<string, string[]>();
  const names = SUBJECT.flatMap((name) =>
    name.endsWith('.ts')
      ? name
      : readdirSync(join(SOURCES, name), { recursive: true, encoding: 'utf8' }).map((file) => join(name, file)),
  );
  for (const file of names.filter((name) => /\.(?:ts|js|sql)$/.test(name) && !name.endsWith('.test.ts'))) {
    if (!importers.has(file)) importers.set(file, []);
    const text = readFileSync(join(SOURCES, file), 'utf8');
    for (const [, relative = ''] of text.matchAll(/(?:^import (?!type )[^;]*? from |import\()'(\.[^']+)'/gm)) {
      const imported = join(dirname(file), relative);
      importers.set(imported, [...(importers.get(imported) ?? []), file]);
    }
  }
  return importers;
}

let importers: Map<string, string[]> | undefined;

/**
 * The sources with the fault: copies of the files that it changes and of all files that import them, directly or
 * indirectly. Other files are links to the originals, which are loaded once for all faults.
 */
export function plant(fault: Fault): { folder: string; remove(): void } {
  const files = faultyFiles(fault);
  importers ??= importersOf();
  const copied = new Set(files.keys());
  for (const file of copied) for (const importer of importers.get(file) ?? []) copied.add(importer);
  const root = mkdtempSync(join(tmpdir(), 'gateway-fault-'));
  const folder = join(root, 'src');
  for (const [file, by] of importers) {
    const isCopied = copied.has(file);
    if (!isCopied && !ENTRIES.includes(file) && !by.some((importer) => copied.has(importer))) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    if (isCopied) writeFileSync(join(folder, file), files.get(file) ?? readFileSync(join(SOURCES, file)));
    else symlinkSync(join(SOURCES, file), join(folder, file));
  }
  symlinkSync(join(SOURCES, '..', 'node_modules'), join(root, 'node_modules'));
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }');
  return { folder, remove: () => rmSync(root, { recursive: true }) };
}
