/** Asks a gateway for its health from a thread of its own, and measures how much processor time the gateway's loop takes meanwhile. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { Connection, requestBytes } from '../connection.ts';

const PROBE_MS = 20;

interface Probed {
  port: number;
  pid: number;
}

/** The processor time of a process's main thread. */
export function loopMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
}

/** Starts to probe. `stop` resolves to the waits, the longest first. */
export function startProber(probed: Probed): { stop(): Promise<number[]> } {
  const worker = new Worker(import.meta.filename, { workerData: probed });
  return {
    stop() {
      worker.postMessage('stop');
      return new Promise((resolve) => {
        worker.once('message', resolve);
      });
    },
  };
}

async function probe(port: { postMessage(waits: number[]): void }, { port: of, pid }: Probed): Promise<void> {
  const post = requestBytes({ port: of, path: '/health/live', headers: {} }, '').toString();
  const request = Buffer.from(post.replace('POST', 'GET').replace(/content-(type|length).*\r\n/g, ''));
  const connection = new Connection(of);
  const waits: number[] = [];
  while (!isStopped) {
    const beforeMs = loopMs(pid);
    await new Promise<void>((resolve) => connection.send(request, { onEnd: () => resolve() }));
    waits.push(loopMs(pid) - beforeMs);
    await sleep(PROBE_MS);
  }
  connection.close();
  port.postMessage(waits.sort((a, b) => b - a));
}

let isStopped = false;
if (parentPort !== null && workerData !== null) {
  parentPort.once('message', () => {
    isStopped = true;
  });
  await probe(parentPort, workerData as Probed);
}
