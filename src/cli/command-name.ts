/** Whether this program is a package that npm has installed, and no checkout. */
const is_installed = /[\\/]node_modules[\\/]model-gateway[\\/]/.test(import.meta.dirname);

/** How the commands of this program are called from where it stands. */
export function commandName(): string {
  return is_installed ? 'npx model-gateway' : 'node bin/model-gateway.cjs';
}

/** How it is started. */
export function startCommand(): string {
  return is_installed ? 'npx model-gateway' : 'npm start';
}
