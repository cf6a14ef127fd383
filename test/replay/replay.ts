import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { compare, describeComparison } from './compare.ts';
import { scriptChance, scriptNames } from './scripted-machine.ts';

const USAGE = `npm run replay -- [options]
Sends every recorded exchange and every golden transcript through a running gateway, as clients of each API, whole and
streamed, and writes one line for each: what the client was answered, what reached the provider, and the stored record. Ids,
clock and chance are scripted: two runs of one commit give equal files.
  --out FILE          where the lines go (test/replay/results/last.jsonl)
  --only PATTERN      exchanges whose name matches a regular expression; a name is <group>/<recording>/<client> <form>
  --sample            the recordings of test/recordings alone
  --against FILE      then compares with an earlier file; ends with 1 where something differs
  --compare A B       compares two files and runs nothing
  --show N            how many differing exchanges are shown one by one (5)
  --list              the names of the groups
To see what a change does: run it with --out before the change, and with --against that file after it.
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: 'string', default: join(import.meta.dirname, 'results/last.jsonl') },
    only: { type: 'string', default: '' },
    sample: { type: 'boolean', default: false },
    against: { type: 'string' },
    compare: { type: 'boolean', default: false },
    show: { type: 'string', default: '5' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const say = (text: string) => process.stdout.write(text);

async function showComparison(before: string, after: string): Promise<void> {
  const comparison = await compare(before, after);
  say(describeComparison(comparison, Number(values.show)));
  const isEqual = [comparison.differing, comparison.missing, comparison.added].every(({ length }) => length === 0);
  process.exitCode = isEqual ? 0 : 1;
}

async function run(): Promise<void> {
  // Before the modules are loaded that read it: all recordings, if they are present.
  process.env['TEST_TIER'] = values.sample ? 'first' : 'second';
  scriptChance();
  scriptNames();
  const { groups } = await import('./groups.ts');
  const { GroupRun, runGroup } = await import('./run-group.ts');
  if (values.list) {
    for (const make of groups) say(`${make(new GroupRun()).name}\n`);
    return;
  }
  const only = new RegExp(values.only);
  mkdirSync(dirname(values.out), { recursive: true });
  const file = openSync(values.out, 'w');
  const whole = createHash('sha256');
  const begunMs = performance.now();
  let count = 0;
  for (const make of groups) {
    const groupMs = performance.now();
    const observed = await runGroup(make, (name) => only.test(name));
    for (const { name, ...rest } of observed) {
      const text = JSON.stringify(rest);
      const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
      const line = `{"hash":"${hash}","name":${JSON.stringify(name)},${text.slice(1)}\n`;
      whole.update(line);
      writeSync(file, line);
    }
    count += observed.length;
    const seconds = ((performance.now() - groupMs) / 1_000).toFixed(1);
    if (observed.length > 0)
      say(`${observed.at(-1)!.name.replace(/\/sums$/, '')}: ${observed.length} in ${seconds} s\n`);
  }
  closeSync(file);
  const seconds = Math.round((performance.now() - begunMs) / 1_000);
  say(`${count} lines in ${seconds} s, sha256 ${whole.digest('hex').slice(0, 16)}: ${values.out}\n`);
  if (values.against !== undefined) await showComparison(values.against, values.out);
}

const [before, after] = positionals;
if (values.help) say(USAGE);
else if (!values.compare) await run();
else if (before !== undefined && after !== undefined) await showComparison(before, after);
else {
  say(USAGE);
  process.exitCode = 2;
}
