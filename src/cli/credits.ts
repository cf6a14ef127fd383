import { parseArgs } from 'node:util';
import { type Environment, loadConfig } from '../config.ts';
import { limits } from '../limits.ts';
import { parseUsd, toNano, toUsd } from '../schemas/money.ts';
import { isStorable } from '../schemas/text.ts';
import { activityStore } from '../storage/activity.ts';
import { creditStore } from '../storage/credits.ts';
import { oneLine } from './one-line.ts';
import { type OpenStore, withStore } from './with-store.ts';

const USAGE = `Usage: model-gateway credits grant USD --reason TEXT [--config FILE]
       model-gateway credits revoke USD --reason TEXT [--config FILE]
       model-gateway credits show [--config FILE]

Without any grant the organization spends without bound. With one, all that it ever spent counts against the sum of grants.
`;

/** Nano-USD for people, exact. */
export function tellUsd(nano: number): string {
  const sign = nano < 0 ? '-' : '';
  return `${sign}$${toUsd(Math.abs(nano))
    .toFixed(9)
    .replace(/0{1,7}$/, '')}`;
}

/** Changes what is granted; says why it cannot. */
function grant({ change, actor, home }: OpenStore, given: { amount_nano: number; reason: string }) {
  const { organization_id } = home;
  const { amount_nano, reason } = given;
  return change(actor, async ({ tx, at, audit, announce }) => {
    const credits = creditStore(tx);
    const before = await credits.lock(organization_id);
    const after = (before ?? 0) + amount_nano;
    if (after < 0) return `Only ${tellUsd(before ?? 0)} were granted.`;
    if (after > toNano(limits.usd_max))
      return `More than ${tellUsd(toNano(limits.usd_max))} cannot be counted exactly.`;
    await credits.grant({ organization_id, amount_nano, reason, at });
    await audit({
      action: 'update',
      resource_type: 'credits',
      resource_id: organization_id,
      before: { total_credits: before === undefined ? null : toUsd(before) },
      after: { total_credits: toUsd(after), amount: toUsd(amount_nano), reason },
    });
    announce({ topic: 'policy', id: organization_id });
    return undefined;
  });
}

async function balance({ database, home }: OpenStore): Promise<string> {
  const granted = await creditStore(database.queries).total(home.organization_id);
  const spent = await activityStore(database.queries).sumUsage(home.organization_id);
  if (granted === undefined)
    return `No credits were granted: spending is not bounded by credits. Spent: ${tellUsd(spent)}\n`;
  return `Granted: ${tellUsd(granted)}  Spent: ${tellUsd(spent)}  Left: ${tellUsd(granted - spent)}\n`;
}

async function show(store: OpenStore): Promise<string> {
  const grants = await creditStore(store.database.queries).list(store.home.organization_id);
  const lines = grants.map(
    ({ created_at, amount_nano, reason }) => `${created_at}  ${tellUsd(amount_nano)}  ${oneLine(reason)}\n`,
  );
  return `${lines.join('')}${await balance(store)}`;
}

/** `model-gateway credits grant|revoke|show`: on the configured store, whether the gateway runs or not. */
export async function runCredits(args: string[], environment: Environment): Promise<number> {
  const { positionals, values } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      config: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
      reason: { type: 'string' },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const [command, amount, ...rest] = positionals;
  const config = loadConfig(environment, values.config === undefined ? {} : { config_file: values.config });
  if (command === 'show' && amount === undefined) {
    process.stdout.write(await withStore(config, show));
    return 0;
  }
  if ((command !== 'grant' && command !== 'revoke') || amount === undefined || rest.length > 0) {
    process.stderr.write(USAGE);
    return 2;
  }
  const amount_nano = parseUsd(amount);
  const reason = values.reason?.trim() ?? '';
  if (amount_nano === undefined || amount_nano === 0) {
    process.stderr.write(`USD must be an amount such as 25 or 0.50, at most ${limits.usd_max}\n`);
    return 2;
  }
  if (reason === '' || reason.length > limits.reason_chars_max || !isStorable(reason)) {
    process.stderr.write(`--reason must be a text of 1 to ${limits.reason_chars_max} characters\n`);
    return 2;
  }
  const given = { amount_nano: command === 'grant' ? amount_nano : -amount_nano, reason };
  return withStore(config, async (store) => {
    const refusal = await grant(store, given);
    if (refusal !== undefined) {
      process.stderr.write(`${refusal}\n`);
      return 1;
    }
    process.stdout.write(await balance(store));
    return 0;
  });
}
