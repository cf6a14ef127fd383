// Plain JavaScript without newer syntax: any version of Node must be able to run it, to report what is missing or to start the
// pinned version.
'use strict';

var fs = require('fs');
var path = require('path');

var root = path.join(__dirname, '..');
/** The oldest version of Node that runs the gateway. npm installs a newer one (`optionalDependencies`). */
var MAJOR = 24;
/** The versions of Node with which the flags of the heap were measured. */
var MEASURED = [24, 26];
/** A package contains compiled files (`deploy/build-package.ts`), a clone the sources. */
var is_package = fs.existsSync(path.join(root, 'dist')) && !fs.existsSync(path.join(root, 'src'));
var SERVICE = is_package ? 'dist/main.js' : 'src/main.ts';
/**
 * Flags of Node. `--no-memory-reducer`: in a process that is idle for some seconds, V8's memory reducer collects the shapes of
 * objects that no request holds at that moment, and the code that was compiled for them; the next requests then cost four times
 * as much. `--use-largepages=silent`: large pages for Node's own code save a tenth of a request's processor time on virtual
 * machines, and systems without them ignore the flag. `--max-semi-space-size=32`: the young generation would grow to two halves
 * of 64 MiB, for 70 MB more memory and longer pauses. With halves of 16 MiB, what 900 running requests hold does not fit, and each
 * costs half as much again. Node needs the flags before it loads a program, so `start` in package.json has them too.
 */
var SERVICE_FLAGS = ['--no-memory-reducer', '--use-largepages=silent', '--max-semi-space-size=32'];
/**
 * Flags of V8 that can be set in a running process, so that every way of starting has them. V8 allocates objects of a kind whose
 * first ones lived long in the old generation, where they and all that they refer to stay until the whole heap is collected; under
 * load these are finished requests (`--no-allocation-site-pretenuring`). The heap would grow to four times its live objects before
 * it is collected whole, and one and a half times is enough (`--heap-growing-percent`). They are part of the name of the cache of
 * compiled code.
 */
var HEAP_FLAGS = ['--no-allocation-site-pretenuring', '--heap-growing-percent=50'];
/**
 * The number of areas from which the C library of Linux allocates. With one for each thread, memory that a thread has freed stays
 * with it: 20 to 40 MB under load. The library reads the variable when a process starts, so the image and the systemd unit set it.
 */
var MALLOC_ARENA_MAX = '1';

/** The folder of a package: npm installs dependencies inside of a package, or beside it. undefined if it is not installed. */
function packageFolder(name) {
  return module.paths.map((folder) => path.join(folder, name)).find(fs.existsSync);
}

/** The path of the pinned runtime for this machine; undefined if there is none for it, or npm did not install it. */
function pinnedRuntime() {
  var name = 'node-' + (process.platform === 'win32' ? 'win' : process.platform) + '-' + process.arch;
  var folder = packageFolder(name);
  return folder && path.join(folder, process.platform === 'win32' ? 'bin/node.exe' : 'bin/node');
}

function fail(lines) {
  process.stderr.write(lines.join('\n') + '\n');
  process.exit(1);
}

/** A file of this repository, or the program that a package installs under this name. */
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
 * Ends the gateway with the process that started it and would stop it: the launcher of an older Node, or `npm start`, whose shell
 * does not pass on the signal that npm sends.
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
 * Ignores SIGHUP, at which a gateway reads its configuration, until the gateway handles the signal: at its start it reads the
 * configuration anyway. A closed terminal sends the same signal, and then the process ends (`src/cli/follow-config.ts`).
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
 * Packages of many small files, which are loaded before the compile cache is enabled. The cache keeps each file in memory, in a
 * buffer of up to twice its size, as long as the process runs: these took 3 MB, and starts are not slower without them.
 */
var NOT_KEPT = ['fastify', 'kysely', 'pino', 'prom-client', 'typebox'];

/**
 * Caches the code that Node compiles from the sources, beside the packages: later starts take less time and memory. A package
 * contains JavaScript already, and gains little.
 */
function keepCompiled() {
  if (!process.env.NODE_COMPILE_CACHE) {
    if (is_package) return;
    process.env.NODE_COMPILE_CACHE = path.join(root, 'node_modules', '.cache', 'model-gateway');
  }
  // Does nothing if the folder cannot be written. Worker threads and processes read the variable.
  require('module').enableCompileCache(process.env.NODE_COMPILE_CACHE);
}

/**
 * Sets the flags of the heap in this process, and in the worker processes that it starts. Only in the versions of Node that they were
 * measured with: another one may not know them, and a worker would not start. Workers also start with the variable of the C library.
 */
function setHeapFlags() {
  if (!process.env.MALLOC_ARENA_MAX) process.env.MALLOC_ARENA_MAX = MALLOC_ARENA_MAX;
  if (MEASURED.indexOf(parseInt(process.versions.node, 10)) === -1) return;
  HEAP_FLAGS.forEach(require('v8').setFlagsFromString);
  process.execArgv = process.execArgv.concat(HEAP_FLAGS);
}

/** Prepares the process before a program is loaded. */
function prepare(name, args) {
  var serves = args.length === 0 || args[0] === 'serve' || args[0].charAt(0) === '-';
  if (name !== SERVICE) return Promise.resolve();
  setHeapFlags();
  if (!serves) return Promise.resolve().then(keepCompiled);
  outliveHangUp();
  return Promise.all(NOT_KEPT.map((name) => import(name))).then(keepCompiled);
}

/** Runs the program on the pinned runtime: passes signals on to it, and ends as it ends. */
function handOver(runtime, name, args) {
  var flags = name === SERVICE ? SERVICE_FLAGS : [];
  var child = require('child_process').spawn(runtime, flags.concat([__filename, name], args), {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: Object.assign({ MALLOC_ARENA_MAX: MALLOC_ARENA_MAX }, process.env, { MODEL_GATEWAY_LAUNCHED: '1' }),
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
