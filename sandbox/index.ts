/** The face of the sandbox: what the gateway may use of it. */
export { sandboxModels, sandboxProviders, sandboxSpeechModels, sandboxVectorModels } from './catalog.ts';
export { modelsByName } from './models.ts';
export { startSandbox } from './server.ts';
