import { connect, createServer, type Socket } from 'node:net';

/**
 * A proxy between a gateway and its PostgreSQL that counts executed statements (messages `Query` and `Execute` of
 * https://www.postgresql.org/docs/15/protocol-message-formats.html). While `held`, it passes nothing on.
 */
export async function countingProxy(databaseUrl: string) {
  const target = new URL(databaseUrl);
  const { port: storePort, hostname: storeHost } = target;
  const counted = { statements: 0 };
  const pairs = new Set<[Socket, Socket]>();
  let held = false;
  const read = () => {
    let rest = Buffer.alloc(0);
    let begun = false;
    return (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes]);
      // The first message has no type.
      for (;;) {
        const head = begun ? 1 : 0;
        if (rest.length < head + 4) return;
        const length = head + rest.readUInt32BE(head);
        if (rest.length < length) return;
        const type = begun ? String.fromCharCode(rest[0]!) : '';
        if (type === 'Q' || type === 'E') counted.statements += 1;
        begun = true;
        rest = rest.subarray(length);
      }
    };
  };
  const server = createServer((client) => {
    const upstream = connect(Number(storePort), storeHost);
    const count = read();
    client.on('data', (bytes) => {
      count(bytes);
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => client.write(bytes));
    const pair: [Socket, Socket] = [client, upstream];
    pairs.add(pair);
    if (held) client.pause();
    for (const socket of pair) {
      socket.on('error', () => {});
      socket.on('close', () => {
        for (const other of pair) other.destroy();
        pairs.delete(pair);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
    server.close();
  };
  const { port } = server.address() as { port: number };
  target.hostname = '127.0.0.1';
  target.port = String(port);
  const hold = (now: boolean) => {
    held = now;
    for (const [client] of pairs) client[now ? 'pause' : 'resume']();
  };
  return { url: target.href, counted, hold, close };
}
