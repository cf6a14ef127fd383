import type { Command } from './command.ts';

/**
 * Loads everything that serving loads, and ends: Node keeps the compiled code (`bin/launch.cjs`), so that the first start takes
 * no more time and memory than later ones. A module that is imported on demand must be added here.
 */
async function warmUp(): Promise<number> {
  for (const load of [
    () => import('./serve-command.ts'),
    () => import('./follow-config.ts'),
    () => import('./serve.ts'),
    () => import('./start-gateway.ts'),
    () => import('./check-config.ts'),
    () => import('../storage/postgres-dialect.ts'),
    () => import('../storage/postgres-change-feed.ts'),
    () => import('../http/documentation.ts'),
    async () => (await import('../guardrails/patterns/re2.ts')).re2(),
    async () => (await import('../config/read-file.ts')).readConfigFile('no file', '{}'),
  ]) {
    await load();
  }
  return 0;
}

/** `model-gateway warm-up`, which `npm ci` runs. */
export const warmUpCommand: Command = { usage: 'Usage: model-gateway warm-up\n', run: warmUp };
