/** Whether this program was installed by npm as a package, and is not a checkout. */
const isInstalled = /[\\/]node_modules[\\/]model-gateway[\\/]/.test(import.meta.dirname);

/** How the commands of this installation are called. */
export function commandName(): string {
  return isInstalled ? 'npx model-gateway' : 'node bin/model-gateway.cjs';
}

/** How this installation is started. */
export function startCommand(): string {
  return isInstalled ? 'npx model-gateway' : 'npm start';
}
