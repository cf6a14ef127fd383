// Plain old JavaScript on purpose: it must run on any Node, to say what is missing or to hand over to the pinned one.
'use strict';

var fs = require('fs');
var path = require('path');

var root = path.join(__dirname, '..');
var MAJOR = 24;
/** A package has what was compiled (`deploy/build-package.ts`), a clone the sources. */
var is_package = fs.existsSync(path.join(root, 'dist')) && !fs.existsSync(path.join(root, 'src'));
var SERVICE = is_package ? 'dist/main.js' : 'src/main.ts';
/**
 * When a process is quiet for some seconds, V8's memory reducer collects the shapes of objects that no request holds just then, and
 * with them the code that was compiled for these shapes: the next requests cost four times as much. Node's own code on large pages
 * takes a tenth of a request's processor time off on virtual machines; `silent`: where the system cannot, nothing happens. The young
 * generation would grow to two halves of 64 MiB, and every request waits while one is collected: a half of 16 MiB takes a quarter of the
 * time. All are wanted before any program runs, so `start` in package.json says the same.
 */
var SERVICE_FLAGS = ['--no-memory-reducer', '--use-largepages=silent', '--max-semi-space-size=16'];

/** Where a package lies: npm puts what a package needs inside of it, or beside it. undefined when it is not installed. */
function packageFolder(name) {
  return module.paths.map((folder) => path.join(folder, name)).find(fs.existsSync);
}

/** Where npm put the pinned runtime of this machine; undefined when there is none for it, or it was not installed. */
function pinnedRuntime() {
  var name = 'node-' + (process.platform === 'win32' ? 'win' : process.platform) + '-' + process.arch;
  var folder = packageFolder(name);
  return folder && path.join(folder, process.platform === 'win32' ? 'bin/node.exe' : 'bin/node');
}

function fail(lines) {
  process.stderr.write(lines.join('\n') + '\n');
  process.exit(1);
}

/** A file of ours, or the program that a package installs under this name. */
function resolveTarget(name) {
  if (/\.(ts|js|cjs|mjs)$/.test(name)) return path.join(root, name);
  var folders = name === 'biome' ? ['@biomejs', 'biome'] : name === 'tsc' ? ['typescript'] : [name];
  var home = packageFolder(folders.join('/'));
  if (home === undefined) fail(['`' + name + '` is not installed. Run `npm ci` in ' + root + ' first.']);
  var bin = JSON.parse(fs.readFileSync(path.join(home, 'package.json'), 'utf8')).bin;
  return path.join(home, typeof bin === 'string' ? bin : bin[name]);
}

/** Ends this process as an operator would: it drains. */
function endByOrder() {
  process.kill(process.pid, 'SIGTERM');
}

/**
 * A gateway must not outlive what started it and would stop it: the launcher of an older Node, or `npm start`, whose
 * shell does not hand on the signal that npm gives it.
 */
function followParent() {
  if (process.env.MODEL_GATEWAY_LAUNCHED === '1' && process.channel) {
    delete process.env.MODEL_GATEWAY_LAUNCHED;
    process.once('disconnect', endByOrder);
    process.channel.unref();
    return;
  }
  if (process.env.npm_lifecycle_event !== 'start' || process.platform === 'win32') return;
  var parent = process.ppid;
  var watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    endByOrder();
  }, 500);
  watch.unref();
}

/**
 * A gateway reads its configuration at SIGHUP. Until it can, the signal must not end it: it is about to read it anyway. A
 * terminal that is closed sends the same signal, and then it ends (`src/cli/follow-config.ts`).
 */
function outliveHangUp() {
  if (process.platform === 'win32') return;
  process.once('SIGHUP', () => {
    try {
      if (process.stdout.isTTY || process.stderr.isTTY) fs.closeSync(fs.openSync('/dev/tty', 'r'));
      outliveHangUp();
    } catch (_) {
      process.kill(process.pid, 'SIGHUP');
    }
  });
}

/**
 * Packages of many small files. What is kept of a file stays in memory, in a buffer up to twice its size, for as long as the process
 * runs: theirs took 3 MB, and starts are no slower without. So these are loaded before anything is kept.
 */
var NOT_KEPT = ['fastify', 'kysely', 'pino', 'prom-client', 'typebox'];

/**
 * What Node makes of our sources is kept beside the packages: later starts are quicker and take less memory. What a package has is
 * JavaScript already, and starts nearly as well without.
 */
function keepCompiled() {
  if (!process.env.NODE_COMPILE_CACHE) {
    if (is_package) return;
    process.env.NODE_COMPILE_CACHE = path.join(root, 'node_modules', '.cache', 'model-gateway');
  }
  // Where the folder cannot be written, this does nothing. Worker threads and processes read the variable.
  require('module').enableCompileCache(process.env.NODE_COMPILE_CACHE);
}

/** What is done before a program is loaded. */
function prepare(name, args) {
  var serves = args.length === 0 || args[0] === 'serve' || args[0].charAt(0) === '-';
  if (name !== SERVICE) return Promise.resolve();
  if (!serves) return Promise.resolve().then(keepCompiled);
  outliveHangUp();
  return Promise.all(NOT_KEPT.map((name) => import(name))).then(keepCompiled);
}

/** Runs the program on the pinned runtime: signals go to it, its end is ours. */
function handOver(runtime, name, args) {
  var flags = name === SERVICE ? SERVICE_FLAGS : [];
  var child = require('child_process').spawn(runtime, flags.concat([__filename, name], args), {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: Object.assign({}, process.env, { MODEL_GATEWAY_LAUNCHED: '1' }),
  });
  var signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  signals.forEach((signal) => {
    process.on(signal, () => {
      child.kill(signal);
    });
  });
  child.on('error', (error) => {
    fail(['The pinned runtime does not start: ' + error.message]);
  });
  child.on('exit', (code, signal) => {
    if (!signal) process.exit(code);
    signals.forEach((name) => {
      process.removeAllListeners(name);
    });
    process.kill(process.pid, signal);
  });
}

/** Runs a program on a Node that is new enough: this one, else the pinned one. */
function launch(name, args) {
  if (packageFolder('fastify') === undefined) {
    fail([
      'The packages of Model Gateway are not installed.',
      is_package ? 'Install it again: npm install -g model-gateway-*.tgz' : 'Run `npm ci` in ' + root + ' first.',
    ]);
  }
  var target = resolveTarget(name);
  if (parseInt(process.versions.node, 10) >= MAJOR) {
    process.argv = [process.execPath, target].concat(args);
    followParent();
    prepare(name, args)
      .then(() => import(require('url').pathToFileURL(target).href))
      .catch((error) => {
        fail([String((error && error.stack) || error)]);
      });
    return;
  }
  var runtime = pinnedRuntime();
  if (runtime === undefined) {
    fail([
      'Model Gateway needs Node ' + MAJOR + ' or newer; this is ' + process.version + '.',
      'For Linux (x64, arm64) and Windows (x64) npm installs a fitting one by itself, unless optional packages were left out.',
      'Elsewhere (' +
        process.platform +
        ' ' +
        process.arch +
        ' here) install Node ' +
        MAJOR +
        ' from https://nodejs.org and try again.',
    ]);
  }
  handOver(runtime, name, args);
}

module.exports = launch;
launch.SERVICE = SERVICE;
if (require.main === module) launch(process.argv[2], process.argv.slice(3));
