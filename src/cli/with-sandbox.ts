import {
  sandboxModels,
  sandboxProviders,
  sandboxSpeechModels,
  sandboxVectorModels,
  startSandbox,
} from '../../sandbox/index.ts';
import { declaredModels } from '../config/models.ts';
import { resolveProviders } from '../config/providers.ts';
import { readConfigFile } from '../config/read-file.ts';
import type { Config } from '../config.ts';

/** The sandbox's providers and models, declared as an operator would declare them. */
export function declaredSandbox(url: string) {
  return {
    providers: sandboxProviders(url),
    models: { ...sandboxModels, ...sandboxVectorModels, ...sandboxSpeechModels },
  };
}

/** The configuration with the sandbox's providers and its models. */
export function addSandbox(config: Config, url: string): Config {
  const declared = JSON.stringify(declaredSandbox(url));
  // It is valid (a test checks that). Parsing it as a file would load the YAML parser for this alone.
  const file = readConfigFile('the sandbox', declared, JSON.parse(declared));
  const { on } = resolveProviders({}, file);
  const slugs = new Set(on.map(({ slug }) => slug));
  const own = new Set(config.models.map(({ id }) => id));
  return {
    ...config,
    plugins: searchedBySandbox(config, url),
    routing: { ...config.routing, sandbox_models: config.providers.length > 0 ? undefined : ['sandbox/echo'] },
    providers: [
      ...config.providers,
      ...on.flatMap((provider) =>
        provider.slug.startsWith('sandbox') ? { ...provider, is_sandbox: true as const } : [],
      ),
    ],
    models: [...config.models, ...declaredModels(file, slugs, true).filter(({ id }) => !own.has(id))],
  };
}

/** If no provider and no search engine is configured, the sandbox also simulates a search engine; real models never get its pages. */
function searchedBySandbox({ providers, plugins }: Config, url: string): Config['plugins'] {
  if (providers.length > 0 || plugins.web.engines.size > 0) return plugins;
  const price = { search_nano: 0, results_included: 0, result_nano: 0 };
  const engines = new Map([['searxng', { base_url: url, api_key: undefined, price }] as const]);
  return { ...plugins, web: { engine: 'searxng', engines } };
}

/** Starts a sandbox on a free loopback port and adds it to the configuration. */
export async function withSandbox(config: Config): Promise<{ config: Config; url: string; stop(): Promise<void> }> {
  const sandbox = await startSandbox();
  return { config: addSandbox(config, sandbox.url), url: sandbox.url, stop: () => sandbox.stop() };
}
