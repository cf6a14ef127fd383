/** The entry of the sandbox: all that the gateway uses. */
export { sandboxModels, sandboxProviders, sandboxSpeechModels, sandboxVectorModels } from './catalog.ts';
export { modelsByName } from './models.ts';
export { startSandbox } from './server.ts';
