import { isLostNode } from '../api/ledger/get-ledger-status.ts';
import { liveNode, releaseNode } from '../api/ledger/release-node.ts';
import { resolveGeneration } from '../api/ledger/resolve-generation.ts';
import { type Config, loadConfig } from '../config.ts';
import { limits } from '../limits.ts';
import { parseUsd, toUsd } from '../schemas/money.ts';
import { type LedgerNode, ledgerOperations } from '../storage/ledger-operations.ts';
import { retentionStore } from '../storage/retention.ts';
import { type Verification, verifyLedger } from '../storage/verify-ledger.ts';
import { type Command, common, printJson, Refusal, readArguments, UsageError } from './command.ts';
import { formatUsd } from './credits.ts';
import { systemClock } from './system-clock.ts';
import { type OpenStore, withStore } from './with-store.ts';

const USAGE = `Usage: model-gateway ledger verify [--json] [--config FILE]
       model-gateway ledger status [--json] [--config FILE]
       model-gateway ledger release NODE [--config FILE]
       model-gateway ledger resolve GENERATION USD [--reason TEXT] [--config FILE]

verify   adds up every interval and every day again from the generations; ends with 1 if something differs
status   lists the nodes with their last sign of life and their reserved money, money booked for lost nodes, estimated charges, deleted rows
release  frees what a lost node has reserved, or what was booked as spent for it; a limit is exceeded by what the node did spend
resolve  corrects, once, the cost of a generation whose end is unknown
`;

function reportOf({ generations, windows, differences }: Verification): string {
  const compared = `${generations} generations, ${windows} windows`;
  if (differences.length === 0) return `${compared}: no differences\n`;
  const lines = differences.map(
    ({ of, name, expected, actual }) =>
      `${of}  ${name}  expected ${expected}  found ${actual}  (${actual - expected})\n`,
  );
  const more = differences.length === limits.verify_differences_max ? ' or more' : '';
  return `${lines.join('')}${compared}: ${differences.length}${more} differences\n`;
}

async function verify(config: Config, asJson: boolean): Promise<number> {
  // Without a statement timeout: the operator waits for the result.
  const result = await withStore(config, ({ database }) => verifyLedger(database.queries), { statement_ms_max: 0 });
  if (asJson) printJson(result);
  else process.stdout.write(reportOf(result));
  return result.differences.length === 0 ? 0 : 1;
}

async function status({ database }: OpenStore, asJson: boolean): Promise<void> {
  const operations = ledgerOperations(database.queries, database.engine);
  const nodes = await operations.listNodes(systemClock.nowMs());
  const { booked_nano, estimated_nano, estimated } = await operations.sumPresumed();
  const deleted = await retentionStore(database).states();
  const sum = (some: LedgerNode[]) => some.reduce((total, { leased_nano }) => total + leased_nano, 0);
  const reservedNano = sum(nodes);
  const inDoubtNano = sum(nodes.filter(isLostNode));
  if (asJson) {
    printJson({
      nodes: nodes.map(({ id, unseen_ms, leased_nano, leases }) => ({
        id,
        unseen_ms: unseen_ms ?? null,
        set_aside: toUsd(leased_nano),
        windows: leases,
      })),
      booked: toUsd(booked_nano),
      estimated: toUsd(estimated_nano),
      estimated_generations: estimated,
      set_aside: toUsd(reservedNano),
      in_doubt: toUsd(inDoubtNano),
      deleted,
    });
    return;
  }
  const lines = nodes.map((node) => {
    const { id, unseen_ms, leased_nano, leases } = node;
    const seen = unseen_ms === undefined ? 'never' : `${Math.max(0, Math.round(unseen_ms / 1_000))} s ago`;
    const doubt = isLostNode(node) && leased_nano > 0 ? '  in doubt' : '';
    return `${id}  seen ${seen}  reserved ${formatUsd(leased_nano)} in ${leases} windows${doubt}\n`;
  });
  const presumed = [
    ...deleted.map(
      (state) =>
        `Deleted by retention: ${state.deleted} ${state.kind.replace('_', ' ')} from before ${state.deleted_before}` +
        `${state.ended_at === null ? ', not complete' : ''}\n`,
    ),
    `Booked as spent for lost nodes: ${formatUsd(booked_nano)}\n`,
    `Charged by estimate: ${formatUsd(estimated_nano)} in ${estimated} generations\n`,
    `Reserved: ${formatUsd(reservedNano)}, of which in doubt: ${formatUsd(inDoubtNano)}\n`,
  ];
  process.stdout.write([...lines, ...presumed].join(''));
}

async function release({ database, change, actor }: OpenStore, node: string): Promise<string> {
  const at = systemClock.nowMs();
  const released = await change(actor, (work) => releaseNode(work, { engine: database.engine, node, at }));
  if ('why' in released) throw new Refusal(released.why === 'live' ? liveNode(node) : `There is no node ${node}.`);
  const { leased_nano, leases, booked_nano } = released;
  const booked = booked_nano > 0 ? `, and ${formatUsd(booked_nano)} that had been booked as spent` : '';
  return `Released ${formatUsd(leased_nano)} in ${leases} windows${booked}\n`;
}

async function resolve(store: OpenStore, id: string, change: { cost_nano: number; reason: string }): Promise<string> {
  const resolution = await resolveGeneration(store.database, store, { id, ...change });
  if ('why' in resolution) {
    if (resolution.why === 'unknown') throw new Refusal(`The store has no generation ${id}.`);
    if (resolution.why === 'resolved') throw new Refusal(`${id} is already resolved.`);
    throw new Refusal(`The cost of ${id} is known: ${formatUsd(resolution.cost_nano)}.`);
  }
  const { cost_nano: before, windows } = resolution.generation;
  return `${id}: ${formatUsd(before)} -> ${formatUsd(change.cost_nano)} in ${windows.length} windows\n`;
}

/** `model-gateway ledger verify|status|release|resolve`: works on the configured store, whether or not the gateway runs. */
export const ledgerCommand: Command = {
  usage: USAGE,
  async run(args, environment) {
    const { positionals, values } = readArguments({
      args,
      allowPositionals: true,
      options: { ...common, reason: { type: 'string', default: 'resolved by an operator' } },
    });
    const [command, named, amount, ...rest] = positionals;
    const config = loadConfig(environment, { config_file: values.config });
    if (command === 'verify' && named === undefined) return verify(config, values.json);
    if (command === 'status' && named === undefined) {
      await withStore(config, (store) => status(store, values.json));
      return 0;
    }
    if (command === 'release' && named !== undefined && amount === undefined) {
      process.stdout.write(await withStore(config, (store) => release(store, named)));
      return 0;
    }
    if (command !== 'resolve' || named === undefined || amount === undefined || rest.length > 0) throw new UsageError();
    const costNano = parseUsd(amount);
    if (costNano === undefined) throw new UsageError('USD must be an amount such as 25 or 0.50.');
    const { reason } = values;
    if (reason.length > limits.reason_chars_max) {
      throw new UsageError(`--reason must have at most ${limits.reason_chars_max} characters.`);
    }
    process.stdout.write(await withStore(config, (store) => resolve(store, named, { cost_nano: costNano, reason })));
    return 0;
  },
};
