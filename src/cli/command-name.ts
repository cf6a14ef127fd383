/** Whether this program was installed by npm as a package, and is not a checkout. */
const isInstalled = /[\\/]node_modules[\\/]model-gateway[\\/]/.test(import.meta.dirname);

/** The shell command that runs this installation, such as `npx model-gateway`. */
export function commandName(): string {
  return isInstalled ? 'npx model-gateway' : 'node bin/model-gateway.cjs';
}

/** The shell command that starts this installation. */
export function startCommand(): string {
  return isInstalled ? 'npx model-gateway' : 'npm start';
}
