// Plain JavaScript: the thread does not load the type stripper, which saves 18 MB.

/** The thread that owns the SQLite file, so that the main event loop never waits for a commit or a long query. */
import { parentPort, workerData } from 'node:worker_threads';
import { openSqlite } from './sqlite-requests.js';

/** @import { SqliteReply, SqliteRequest, SqliteWorkerOptions } from './sqlite-messages.ts' */

function serve() {
  const port = parentPort;
  if (!port) throw new Error('sqlite-worker runs in a worker thread only');
  const answer = openSqlite(/** @type {SqliteWorkerOptions} */ (workerData));
  port.on('message', (/** @type {SqliteRequest} */ request) => port.postMessage(answer(request)));
  port.postMessage(/** @type {SqliteReply} */ ({ id: 0, rows: [], changes: undefined }));
}

serve();
