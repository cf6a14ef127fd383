import { loadConfig } from '../config.ts';
import { limits } from '../limits.ts';
import { parseUsd, toNano, toUsd } from '../schemas/money.ts';
import { isStorable } from '../schemas/text.ts';
import { activityStore } from '../storage/activity.ts';
import { creditStore } from '../storage/credits.ts';
import { type Command, common, printJson, Refusal, readArguments, UsageError } from './command.ts';
import { oneLine } from './one-line.ts';
import { type OpenStore, withStore } from './with-store.ts';

const USAGE = `Usage: model-gateway credits grant USD --reason TEXT [--config FILE]
       model-gateway credits revoke USD --reason TEXT [--config FILE]
       model-gateway credits show [--json] [--config FILE]

Without a grant the spending of the organization is not limited. With one, everything that it ever spent counts against the sum of grants.
`;

/** Nano-USD as text, exact. */
export function formatUsd(nano: number): string {
  const sign = nano < 0 ? '-' : '';
  return `${sign}$${toUsd(Math.abs(nano))
    .toFixed(9)
    .replace(/0{1,7}$/, '')}`;
}

/** Adds a grant. Returns the reason if it cannot. */
function grant({ change, actor, home }: OpenStore, entry: { amount_nano: number; reason: string }) {
  const { organization_id } = home;
  const { amount_nano, reason } = entry;
  return change(actor, async ({ tx, at, audit, announce }) => {
    const credits = creditStore(tx);
    const before = await credits.lock(organization_id);
    const after = (before ?? 0) + amount_nano;
    if (after < 0) return `Only ${formatUsd(before ?? 0)} were granted.`;
    if (after > toNano(limits.usd_max))
      return `More than ${formatUsd(toNano(limits.usd_max))} cannot be counted exactly.`;
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

interface Balance {
  /** null: nothing was granted, so credits do not limit spending. */
  granted_nano: number | null;
  spent_nano: number;
}

async function balanceOf({ database, home }: OpenStore): Promise<Balance> {
  const grantedNano = (await creditStore(database.queries).total(home.organization_id)) ?? null;
  return {
    granted_nano: grantedNano,
    spent_nano: await activityStore(database.queries).sumUsage(home.organization_id),
  };
}

function balanceLine({ granted_nano, spent_nano }: Balance): string {
  if (granted_nano === null) {
    return `No credits were granted: spending is not limited by credits. Spent: ${formatUsd(spent_nano)}\n`;
  }
  const left = formatUsd(granted_nano - spent_nano);
  return `Granted: ${formatUsd(granted_nano)}  Spent: ${formatUsd(spent_nano)}  Left: ${left}\n`;
}

async function show(store: OpenStore, asJson: boolean): Promise<void> {
  const grants = await creditStore(store.database.queries).list(store.home.organization_id);
  const balance = await balanceOf(store);
  if (asJson) {
    printJson({
      granted: balance.granted_nano === null ? null : toUsd(balance.granted_nano),
      spent: toUsd(balance.spent_nano),
      grants: grants.map(({ created_at, amount_nano, reason }) => ({ created_at, amount: toUsd(amount_nano), reason })),
    });
    return;
  }
  for (const { created_at, amount_nano, reason } of grants) {
    process.stdout.write(`${created_at}  ${formatUsd(amount_nano)}  ${oneLine(reason)}\n`);
  }
  process.stdout.write(balanceLine(balance));
}

/** `model-gateway credits grant|revoke|show`: works on the configured store, whether or not the gateway runs. */
export const creditsCommand: Command = {
  usage: USAGE,
  async run(args, environment) {
    const { positionals, values } = readArguments({
      args,
      allowPositionals: true,
      options: { ...common, reason: { type: 'string' } },
    });
    const [command, amount, ...rest] = positionals;
    const config = loadConfig(environment, { config_file: values.config });
    if (command === 'show' && amount === undefined) {
      await withStore(config, (store) => show(store, values.json));
      return 0;
    }
    if ((command !== 'grant' && command !== 'revoke') || amount === undefined || rest.length > 0)
      throw new UsageError();
    const amountNano = parseUsd(amount);
    const reason = values.reason?.trim() ?? '';
    if (amountNano === undefined || amountNano === 0) {
      throw new UsageError(`USD must be an amount such as 25 or 0.50, at most ${limits.usd_max}.`);
    }
    if (reason === '' || reason.length > limits.reason_chars_max || !isStorable(reason)) {
      throw new UsageError(`--reason must be a text of 1 to ${limits.reason_chars_max} characters.`);
    }
    const change = { amount_nano: command === 'grant' ? amountNano : -amountNano, reason };
    await withStore(config, async (store) => {
      const refusal = await grant(store, change);
      if (refusal !== undefined) throw new Refusal(refusal);
      process.stdout.write(balanceLine(await balanceOf(store)));
    });
    return 0;
  },
};
