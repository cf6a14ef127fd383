import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createVault } from './accounts/vault.ts';
import { createUsageUpkeep } from './api/analytics/usage-upkeep.ts';
import { createTranscription } from './api/audio/create-transcription.ts';
import { authPages } from './api/auth/auth-pages.ts';
import type { PageSessions } from './api/auth/page-sessions.ts';
import { type AuthenticateOptions, createAuthenticate } from './api/authenticate.ts';
import { countModels } from './api/catalog/count-models.ts';
import { getModel } from './api/catalog/get-model.ts';
import { listEndpointHealth } from './api/catalog/list-endpoint-health.ts';
import { listEndpointPrices } from './api/catalog/list-endpoint-prices.ts';
import { listFailingEndpoints } from './api/catalog/list-failing-endpoints.ts';
import { listModelEndpoints } from './api/catalog/list-model-endpoints.ts';
import { listModels } from './api/catalog/list-models.ts';
import { listUsableModels } from './api/catalog/list-usable-models.ts';
import { listZdrEndpoints } from './api/catalog/list-zdr-endpoints.ts';
import { createListings } from './api/catalog/listings.ts';
import { createPriceHistory } from './api/catalog/price-history.ts';
import { retrieveModel } from './api/catalog/retrieve-model.ts';
import { createChange } from './api/change.ts';
import { createChatCompletion } from './api/chat/create-chat-completion.ts';
import { getGeneration } from './api/chat/get-generation.ts';
import { getGenerationContent } from './api/chat/get-generation-content.ts';
import { createLoggedContents } from './api/chat/logged-contents.ts';
import { createCompletion } from './api/completions/create-completion.ts';
import { createEmbeddings } from './api/embeddings/create-embeddings.ts';
import { listEmbeddingModels } from './api/embeddings/list-embedding-models.ts';
import { createGenerationFill } from './api/generations/fill-generation-lists.ts';
import { createPreviousSecretUses } from './api/keys/previous-secret-uses.ts';
import { createLostNodes } from './api/ledger/book-lost-nodes.ts';
import { type ManagementDependencies, serveManagement } from './api/management.ts';
import { countMessageTokens } from './api/messages/count-message-tokens.ts';
import { createMessage } from './api/messages/create-message.ts';
import { health as healthOperation } from './api/operations/health.ts';
import { type MetricsSource, metrics as metricsOperation } from './api/operations/metrics.ts';
import { createOwnCredentials } from './api/own-credentials.ts';
import { createProbes } from './api/probes.ts';
import { recentOutcomes } from './api/recent-outcomes.ts';
import { createResponse } from './api/responses/create-response.ts';
import { deleteResponse } from './api/responses/delete-response.ts';
import { getResponse } from './api/responses/get-response.ts';
import { listInputItems } from './api/responses/list-input-items.ts';
import { createStoredResponses } from './api/responses/stored-responses.ts';
import { explainRoute } from './api/routing/explain-route.ts';
import { createBodyCheck } from './api/shared/check-body.ts';
import { createRetentionSweeps } from './api/system/retention-sweeps.ts';
import type { Catalog } from './catalog/catalog.ts';
import { type Config, gatewayVersion } from './config.ts';
import { GatewayError, shuttingDown } from './errors.ts';
import { accessLog, connectionLog } from './http/access-log.ts';
import { createServer } from './http/create-server.ts';
import { createMemory } from './http/memory.ts';
import { collectRoutes, serveDocumentation } from './http/openapi.ts';
import { serveConsole } from './http/pages/console.ts';
import type { Principal } from './http/principal.ts';
import { createRateLimit } from './http/rate-limit.ts';
import type { Server } from './http/server.ts';
import { StoreWait } from './http/store-wait.ts';
import { trustedProxies } from './http/trusted-proxies.ts';
import type { Clock } from './inference/call.ts';
import { createInference } from './inference/create-inference.ts';
import { createAnalyzer } from './inference/guardrails/analyzer-in-use.ts';
import { inputGuardrails } from './inference/guardrails/input-guardrails.ts';
import { outputGuardrails } from './inference/guardrails/output-guardrails.ts';
import { UsualOutput } from './inference/money/attempt-cost.ts';
import { createTokenizer } from './inference/money/tokenizer.ts';
import { createBroadcast } from './inference/observe/broadcast.ts';
import { requestLog } from './inference/observe/request-log.ts';
import { createStatisticsExchange } from './inference/observe/statistics-exchange.ts';
import { createTraffic } from './inference/observe/traffic.ts';
import { createPipeline } from './inference/pipeline.ts';
import { createRateLimits } from './inference/plan/rate-limits.ts';
import { createEnvelopes } from './inference/reasoning/envelope.ts';
import { createSealer } from './inference/reasoning/seal.ts';
import { createTurnStates } from './inference/reasoning/states.ts';
import { createTurnVault } from './inference/reasoning/vault.ts';
import type { Recorder } from './ledger/recorder.ts';
import { limits } from './limits.ts';
import { createCompression } from './plugins/compression.ts';
import { createFileParser } from './plugins/files/file-parser.ts';
import { createOcr } from './plugins/files/ocr.ts';
import { createPdfReader } from './plugins/files/pdf-reader.ts';
import { createHealing } from './plugins/healing/healing.ts';
import { plugins } from './plugins/plugins.ts';
import { createServerTools } from './plugins/tools/server-tools.ts';
import { createWebAdapter } from './plugins/web/adapter.ts';
import { createWebSearch } from './plugins/web/search.ts';
import { createSearchWire } from './plugins/web/search-wire.ts';
import { dialects } from './providers/dialects.ts';
import { createMediaFetcher, createPageFetcher } from './providers/transport/fetch-media.ts';
import { createServices } from './providers/transport/services.ts';
import { createUpstream } from './providers/transport/upstream.ts';
import { createEndpointStatistics } from './routing/endpoint-statistics.ts';
import { endpointStates, statisticsShown } from './routing/endpoint-status.ts';
import { createHealth } from './routing/health.ts';
import { createStickiness } from './routing/stickiness.ts';
import { analyticsStore } from './storage/analytics.ts';
import { budgetStore } from './storage/budgets.ts';
import { byokStore } from './storage/byok.ts';
import type { ChangeFeed } from './storage/change-feed.ts';
import type { Database } from './storage/database.ts';
import { endpointPriceStore } from './storage/endpoint-prices.ts';
import { endpointStatisticsStore } from './storage/endpoint-statistics.ts';
import { generationLists } from './storage/generation-lists.ts';
import { generationStore } from './storage/generations.ts';
import { guardrailStore } from './storage/guardrails.ts';
import { findKeyFacts } from './storage/key-facts.ts';
import { keyStore } from './storage/keys.ts';
import { ledgerOperations } from './storage/ledger-operations.ts';
import { loggedContentStore } from './storage/logged-contents.ts';
import { type Home, organizationStore } from './storage/organizations.ts';
import { rateWindowStore } from './storage/rate-windows.ts';
import { reasoningStateStore } from './storage/reasoning-states.ts';
import { storedResponseStore } from './storage/stored-responses.ts';
import { isUnavailable } from './storage/unavailable.ts';
import { usualOutputs } from './storage/usual-outputs.ts';
import { workspaceStore } from './storage/workspaces.ts';
import type { Logger } from './telemetry/log.ts';
import type { Metrics } from './telemetry/metrics.ts';

/** The time between two looks at the running requests during a shutdown. */
const SHUTDOWN_POLL_MS = 50;

/** The configuration and the catalogs in force. A reload replaces them together. */
export interface ActiveConfiguration {
  /** The settings in force. Settings that need a restart keep their values of the start. */
  config: Config;
  catalog: Catalog;
  /** The catalog with the providers of `providers_own_only` as well. Built at the first call. */
  wholeCatalog(): Catalog;
}

/** What the gateway needs from outside: the store, the journal, the clocks, the log. */
export interface AppOptions {
  /**
   * Returns the configuration and the catalogs in force. Code calls it at each use of a value that a reload may change
   * (`src/cli/reload.ts` lists them).
   */
  served(): ActiveConfiguration;
  database: Database;
  /** Announces the changes of this node to other nodes, and reports theirs. */
  changes: ChangeFeed;
  home: Home;
  /** The secret that encrypts stored credentials. */
  secret: string;
  recorder: Recorder;
  /** Recomputes the sums of the ledger and compares them, over a connection of its own. */
  verify: ManagementDependencies['verify'];
  /** Whether an operator has revoked a key on this node alone. */
  isRevokedHere: AuthenticateOptions['isRevokedHere'];
  /** The store's time, and this machine's monotonic clock. */
  clock: Clock;
  /** `Math.random` if not set. */
  chance?: (() => number) | undefined;
  log: Logger;
  metrics: Metrics;
  metrics_source: MetricsSource;
}

export interface App {
  server: Server;
  /** Binds every configured address, then runs `finish`. The service becomes ready after that. */
  listen(address: { host: string; port: number; reusePort: boolean }, finish: () => Promise<void>): Promise<void>;
  /** Forgets the failures of endpoints that a reload has changed. */
  forgetFailures(hasChanged: (endpointId: string) => boolean): void;
  /** Stops taking requests, lets the running ones finish within a bound, then ends the rest and notifies their clients. */
  drain(): Promise<void>;
}

/** The composition root: builds the service from its parts. Nothing listens yet. */
export async function createApp(options: AppOptions): Promise<App> {
  const { served, database, changes, home, recorder, clock, log, metrics } = options;
  /** The configuration of the start, only for settings that need a restart. Other code calls `served` each time. */
  const { config } = served();
  const catalog = () => served().catalog.at(clock.nowMs());
  const wholeCatalog = () => served().wholeCatalog().at(clock.nowMs());
  const routers = () => served().config.routing;
  const listingsFor = createListings();
  const listings = () => listingsFor(catalog(), routers());
  const generations = generationStore(database.queries);
  const upstream = createUpstream(config.timeouts, config.proxies);
  const services = createServices(config.proxies);
  const tokenizer = createTokenizer();
  const analyzer = createAnalyzer(services, () => served().config.guardrails.analyzer);
  const proxies = trustedProxies(config.http.trusted_proxies);
  const memory = createMemory(config.limits.memory_bytes);
  metrics.watchMemory(() => memory.held_bytes);
  const connections = { ...config.http, trustedProxies: proxies };
  const onExcess = connectionLog(log, metrics);
  let starting = true;
  let draining = false;

  const memoryOptions = {
    clock: database.clock,
    changes,
    serve_without_store_ms: config.ledger.serve_without_store_ms,
  };
  // The embedded store has its own time limits and no network.
  const storeWait =
    database.engine === 'postgres' ? () => new StoreWait(limits.store_read_ms_max, clock.monotonicMs) : undefined;
  const previousSecrets = createPreviousSecretUses({ keys: keyStore(database.queries), log });
  const authenticate = createAuthenticate({
    findKey: (hash) => findKeyFacts(database.prompt, hash),
    findOwner: organizationStore(database.prompt).findOwner,
    findBudgets: budgetStore(database.prompt).findBySubjects,
    findGuardrails: guardrailStore(database.prompt).listHolding,
    findWorkspace: workspaceStore(database.prompt).find,
    management_key: config.management_key,
    home,
    clock,
    memory: memoryOptions,
    isRevokedHere: options.isRevokedHere,
    onPreviousSecret: previousSecrets.use,
  });
  const { serve_without_store_ms } = config.ledger;
  // Set later: the pages depend on parts that are built after the server.
  let sessions: PageSessions | undefined;
  const server = createServer({
    authenticate,
    authenticateSession: async (request, reply) => sessions?.principal(request, reply),
    confirmSession: async (principal) => sessions?.confirm(principal) ?? principal,
    storeWait,
    logger: log,
    body_bytes_max: config.body_bytes_max,
    connections,
    onExcess,
    memory,
    translate: storeRefusal,
    limitManagement: createRateLimit(config.limits.management_requests_per_minute, clock),
    admit(request, reply) {
      if (draining && !request.url.startsWith('/health')) return shuttingDown();
      if (serve_without_store_ms > 0 && request.principal?.kind === 'management' && request.method !== 'GET') {
        // Nodes that cannot reach the store may not know of a change or revocation until then.
        const until = new Date(clock.nowMs() + serve_without_store_ms).toISOString();
        reply.header('x-gateway-unreachable-nodes-serve-until', until);
      }
      return undefined;
    },
    checkBody: createBodyCheck(config.media),
    observe: accessLog(log, metrics),
  });
  const { running } = server;
  metrics.watchConnections(server.connections.count);
  const routes = collectRoutes(server);

  const ownCredentials = createOwnCredentials({
    findEnabled: byokStore(database.prompt).findEnabled,
    vault: createVault(options.secret),
    takesJson(slug) {
      const dialect = wholeCatalog().provider(slug)?.dialect;
      return dialect !== undefined && dialects.get(dialect)?.json_credentials === true;
    },
    memory: memoryOptions,
    log,
  });
  const turns = createTurnVault({
    secret: options.secret,
    store: config.reasoning_state.keep === 'store' ? reasoningStateStore(database.queries) : undefined,
    crypt: createVault(options.secret),
    nowMs: clock.nowMs,
    keep_ms: config.reasoning_state.hours * 3_600_000,
    log,
  });
  changes.listen((change) => {
    if (change !== 'everything' && change.topic === 'workspace_gone') turns.forget(change.id);
  });
  const envelopes = createEnvelopes(options.secret);
  const responses = createStoredResponses({
    // `find` is part of a request's wait for the store; writes have a time limit of their own.
    store: { ...storedResponseStore(database.queries), find: storedResponseStore(database.prompt).find },
    vault: createVault(options.secret),
    retention_days: config.responses.retention_days,
    nowMs: clock.nowMs,
    log,
  });
  const stored = config.responses.store ? responses : undefined;
  const rates = createRateLimits({
    rules: () => served().config.rate_limits,
    store: rateWindowStore(database.prompt, database.engine),
    clock,
    log,
    metrics,
  });
  const statistics = createEndpointStatistics();
  const exchange = createStatisticsExchange({
    statistics,
    store: endpointStatisticsStore(database.queries, database.engine),
    run: randomUUID(),
    nowMs: clock.nowMs,
    log,
  });
  const health = createHealth(statistics.performance);
  const shownStatistics = (id: string) => {
    const shown = statisticsShown(id, { health, statistics, now_ms: clock.nowMs() });
    const { endpoint_status } = served().config.compatibility;
    return endpoint_status === 'integer' ? { ...shown, status: Number(shown.status) } : shown;
  };
  const media = createMediaFetcher(config.media, { proxies: config.proxies });
  const pdfs = createPdfReader();
  const ocr = createOcr(services, () => served().config.plugins.file_parser.ocr);
  const files = createFileParser({ reader: pdfs, fetcher: media, ocr });
  const healing = createHealing();
  const search = createWebSearch(services, () => served().config.plugins.web);
  const usual = new UsualOutput();
  const engine = createInference({
    catalog,
    wholeCatalog,
    ownCredentials,
    upstream,
    media,
    adapters: [files.adapter, createWebAdapter(search, clock.nowMs), createCompression(tokenizer)],
    preparations: [createSearchWire(), files.preparation],
    server_tools: createServerTools(search, {
      pages: createPageFetcher(config.media, { proxies: config.proxies }),
      pdfs,
    }),
    states: createTurnStates({
      sealer: createSealer(options.secret),
      vault: turns,
      keeps: config.reasoning_state.keep !== 'off',
    }),
    recorder,
    rates,
    tokenizer,
    health,
    usual,
    traffic: createTraffic(statistics, clock),
    clock,
    chance: options.chance ?? Math.random,
    routing: routers,
    stickiness: createStickiness(),
    metrics,
    log,
    rules: config.ledger,
    default_model: config.default_model,
    allow_unpriced: config.ledger.unknown_price === 'allow',
    first_token_ms_max: config.timeouts.upstream_first_token_ms_max,
    total_ms_max: config.timeouts.upstream_total_ms_max,
  });
  const contents = createLoggedContents({
    store: loggedContentStore(database.queries),
    vault: createVault(options.secret),
    retention_days: config.logging.retention_days,
    nowMs: clock.nowMs,
    log,
    metrics,
  });
  const generationFill = createGenerationFill({ lists: generationLists(database.queries), log });
  const endpointPrices = endpointPriceStore(database.queries);
  const priceHistory = createPriceHistory({ catalog, store: endpointPrices, nowMs: clock.nowMs, log });
  const usageUpkeep = createUsageUpkeep({ store: analyticsStore(database.queries), log });
  const broadcast = createBroadcast({
    destinations: config.logging.broadcast,
    services,
    version: gatewayVersion(),
    secret: options.secret,
    clock,
    chance: Math.random,
    metrics,
    log,
  });
  // Requests pass from the first to the last, answers from the last to the first.
  const inference = createPipeline(engine, [
    inputGuardrails({ analyzer, rules: () => served().config.guardrails, metrics, log }),
    requestLog({ contents, broadcast, clock, log }),
    outputGuardrails({ metrics, phoneRegions: () => served().config.guardrails.phone_regions }),
    plugins({ files, healing, hasOcr: ocr.isOn }),
  ]);
  const settled = () => recentOutcomes(recorder);
  const change = createChange({ database, changes, now: clock.nowMs, settled });
  const probes =
    config.probes === null
      ? undefined
      : createProbes({ ...config.probes, database, change, home, catalog, inference, statistics, health, clock, log });
  metrics.watchRecorder(() => recorder.state());
  metrics.watchStore(database);
  metrics.watchEndpoints(() => endpointStates({ health, statistics, now_ms: clock.nowMs() }));
  const ledger = ledgerOperations(database.queries, database.engine);
  metrics.watchDoubt(async () => ({
    in_doubt_nano: await ledger.sumInDoubt(clock.nowMs()),
    ...(await ledger.sumPresumed()),
  }));
  const releaseS = config.ledger.lost_node_release_after;
  const afterMs = releaseS === undefined ? undefined : releaseS * 1000;
  const lost = createLostNodes({ after_ms: afterMs, database, change, home, clock, log });

  const retention = createRetentionSweeps({
    days: () => served().config.retention,
    database,
    change,
    home,
    clock,
    metrics,
    log,
  });

  const findGeneration = async (id: string, { organization_id }: Principal) =>
    recorder.find(id) ?? (await generations.findById({ organization_id, id }));

  await server.register(
    (scope, _options, done) => {
      const api = scope as unknown as Server;
      const { heartbeat_first_ms, heartbeat_ms } = config.timeouts;
      const samplerOffValues = () => served().config.compatibility.sampler_off_values;
      createChatCompletion(api, { inference, clock, heartbeat_first_ms, heartbeat_ms, envelopes, samplerOffValues });
      countMessageTokens(api, { inference, clock, envelopes });
      createMessage(api, { inference, clock, heartbeat_first_ms, heartbeat_ms, envelopes });
      createResponse(api, {
        inference,
        clock,
        envelopes,
        stored,
        heartbeat_first_ms,
        heartbeat_ms,
        samplerOffValues,
      });
      getResponse(api, { stored });
      deleteResponse(api, { stored });
      listInputItems(api, { stored });
      createCompletion(api, { inference, clock, heartbeat_first_ms, heartbeat_ms, samplerOffValues });
      createEmbeddings(api, { inference, tokenizer, clock });
      createTranscription(api, { inference, clock });
      listEmbeddingModels(api, { listings, statistics: shownStatistics, now: clock.nowMs });
      explainRoute(api, { inference, recorder, clock, samplerOffValues });
      getGenerationContent(api, { contents });
      getGeneration(api, {
        generations: { find: findGeneration, keptDays: () => served().config.retention.generations_days },
      });
      listModels(api, { listings, site: config.auth, statistics: shownStatistics, now: clock.nowMs });
      countModels(api, { listings, now: clock.nowMs });
      listUsableModels(api, {
        wholeCatalog,
        ownCredentials,
        allow_unpriced: config.ledger.unknown_price === 'allow',
        statistics: shownStatistics,
        now: clock.nowMs,
      });
      getModel(api, { catalog, routers });
      retrieveModel(api, { catalog, routers });
      listModelEndpoints(api, { catalog, listings, routers, statistics: shownStatistics });
      listEndpointHealth(api, {
        catalog,
        routers,
        days: endpointStatisticsStore(database.queries, database.engine).listDays,
        now: clock.nowMs,
      });
      listEndpointPrices(api, { catalog, routers, prices: endpointPrices.list });
      listFailingEndpoints(api, { catalog, routers, health, statistics, now: clock.nowMs });
      listZdrEndpoints(api, { catalog, listings, statistics: shownStatistics });
      serveManagement(api, {
        providers() {
          const { providers_off, providers } = served().config;
          return [...providers_off, ...providers];
        },
        database,
        change,
        catalog,
        wholeCatalog,
        recorder,
        clock,
        proxies,
        secret: options.secret,
        mayKeysMakeCodes: () => served().config.codes_by_api_key,
        samplerOffValues,
        home,
        system() {
          const { config: current } = served();
          return {
            version: gatewayVersion(),
            runtime: process.version,
            started_at: config.loaded_at,
            settings: current.settings,
            retention: current.retention,
            providers: current.providers,
            models: current.models,
            host: config.host,
            public_origin: config.auth.public_origin,
            has_own_secret: config.secret !== undefined,
          };
        },
        verify: options.verify,
        configured() {
          const { providers, providers_own_only, providers_off } = served().config;
          return { on: providers, own_only: providers_own_only, off: providers_off };
        },
        isRefused: (id) => health.condition(id, clock.nowMs()) === 'refused',
        services,
        dryRuns: {
          contents,
          inference,
          envelopes,
          analyzer,
          timeoutMs: () => served().config.guardrails.timeout_ms,
          phoneRegions: () => served().config.guardrails.phone_regions,
        },
      });
      done();
    },
    { prefix: '/api/v1' },
  );
  sessions = await authPages(server, {
    queries: database.queries,
    change,
    authenticate,
    secret: options.secret,
    management_key: config.management_key,
    public_origin: config.auth.public_origin,
    proxies,
    has_console: config.console,
    issuer: config.auth.issuer,
    sendToIssuer: services.ask,
    organization_id: home.organization_id,
    translate: storeRefusal,
    isRevokedHere: options.isRevokedHere,
    clock,
  });
  // Concurrent callers share one query of the store.
  let asking: Promise<boolean> | undefined;
  const storeAnswers = () => {
    asking ??= answers(database).finally(() => {
      asking = undefined;
    });
    return asking;
  };
  healthOperation(server, {
    async unready() {
      if (starting) return 'the gateway is starting';
      if (running.isLeaving) return 'the gateway is shutting down';
      const { problem } = recorder.state();
      if (problem !== undefined) return problem;
      return (await storeAnswers()) ? undefined : 'the store does not answer';
    },
  });
  const metricsServer =
    config.metrics.listen &&
    createServer({
      authenticate,
      storeWait,
      logger: log,
      body_bytes_max: limits.form_bytes_max,
      connections,
      onExcess,
      observe: accessLog(log, metrics),
    });
  metricsOperation(metricsServer ?? server, options.metrics_source, config.metrics.token);
  serveDocumentation(server, routes);
  serveConsole(server, { is_on: config.console });
  await server.ready();
  await metricsServer?.ready();
  exchange.start();
  lost.start();
  responses.start();
  contents.start();
  generationFill.start();
  usageUpkeep.start();
  priceHistory.start();
  retention.start();
  const seeded = usualOutputs(database.queries, clock.nowMs()).then(
    (sums) => usual.seed(sums),
    (error: unknown) => log.warn({ err: error }, 'the usual length of answers could not be read from the store'),
  );
  // Read the statistics of other nodes first: otherwise endpoints that they call look unused and are probed.
  if (probes !== undefined) await exchange.exchange();
  await probes?.start();

  return {
    server,
    async listen({ host, port, reusePort }, finish) {
      const shared = reusePort ? { reusePort } : {};
      await server.listenOn({ host, port, ...shared });
      await metricsServer?.listenOn({ ...config.metrics.listen, ...shared });
      await finish();
      // Await this before load balancers send calls: a call that a kill interrupts is charged for an answer of the usual length.
      await seeded;
      starting = false;
    },
    forgetFailures: health.forget,
    async drain() {
      running.leave();
      // Load balancers poll readiness: until the next poll they still send requests here.
      const { shutdown_grace_ms } = config.timeouts;
      if (shutdown_grace_ms > 0 && server.server.listening) await sleep(shutdown_grace_ms);
      draining = true;
      const probed = Promise.all([probes?.stop(), lost.stop(), generationFill.stop(), retention.stop()]);
      const closed = server.close();
      // Otherwise a connection whose last answer ends after the close stays open until its keep-alive timeout.
      const idle = setInterval(() => server.connections.closeIdle(), SHUTDOWN_POLL_MS);
      const boundMs = config.timeouts.shutdown_ms_max;
      // Calls that continue without their clients (an upstream that bills anyway is read further) have the same time limit.
      const bound = setTimeout(running.stop, boundMs);
      // Clients that do not read this notice are disconnected.
      const closeMs = boundMs + limits.shutdown_settle_ms_max;
      const last = setTimeout(() => server.server.closeAllConnections(), closeMs);
      // A little later than the connections, so that what was sent on them is recorded.
      const late = sleep(closeMs + SHUTDOWN_POLL_MS, undefined, { ref: false });
      await closed;
      await metricsServer?.close();
      clearInterval(idle);
      clearTimeout(last);
      await Promise.race([running.idle(), late]);
      clearTimeout(bound);
      await Promise.race([probed, late]);
      await upstream.close();
      await tokenizer.stop();
      await analyzer.stop();
      await pdfs.stop();
      await healing.stop();
      await turns.stop();
      await responses.stop();
      await Promise.all([
        contents.stop(),
        usageUpkeep.stop(),
        priceHistory.stop(),
        broadcast.stop(),
        previousSecrets.stop(),
      ]);
      await services.close();
      await exchange.stop();
      await rates.stop();
      await Promise.race([running.idle(), sleep(limits.shutdown_settle_ms_max, undefined, { ref: false })]);
    },
  };
}

/** The 503 for an error of a store that does not answer: the client may try again. Undefined for any other error. */
function storeRefusal(error: unknown): GatewayError | undefined {
  if (!isUnavailable(error)) return undefined;
  return new GatewayError(503, 'The store does not answer at the moment; try again soon', {
    headers: { 'retry-after': '1' },
    cause: error,
  });
}

/** Whether the store answers a trivial query within `readiness_ms_max`. */
async function answers(database: Database): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), limits.readiness_ms_max);
  });
  const ping = database.ping().then(
    () => true,
    () => false,
  );
  try {
    return await Promise.race([ping, late]);
  } finally {
    clearTimeout(timer);
  }
}
