import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../../test/tier.ts';
import { ResponseParser } from './parser.ts';

interface Reading {
  interim: number;
  status: number | undefined;
  headers: unknown;
  body: string;
  /** The framing and reuse, if the head is complete. */
  end: string;
  /** Bytes after the answer. */
  rest: string;
}

/** Reads an answer in these pieces, then the end of the connection. */
function read(pieces: readonly Buffer[], piecesMax = 1_000): Reading {
  const parser = new ResponseParser();
  const body: Buffer[] = [];
  const rest: Buffer[] = [];
  // As with sockets, all pieces arrive in one buffer, which is overwritten.
  const shared = Buffer.alloc(100_000);
  for (const piece of pieces) {
    piece.copy(shared);
    let at = 0;
    for (;;) {
      const from = at;
      at = parser.read(shared, at, piece.length, piecesMax);
      const bytes = parser.takeBody();
      if (bytes !== undefined) body.push(bytes);
      if (at === from || parser.failure !== undefined) break;
    }
    shared.fill('#');
    if (parser.failure !== undefined) break;
    rest.push(piece.subarray(at));
  }
  const isFailed = parser.failure !== undefined || parser.finish() !== undefined;
  const { head, isFramed, isKept, interimAnswers } = parser;
  return {
    interim: interimAnswers,
    status: head?.status,
    headers: head?.headers,
    body: Buffer.concat(body).toString('latin1'),
    end: isFailed ? 'failed' : `framed ${isFramed}, kept ${isKept}`,
    rest: isFailed ? '' : Buffer.concat(rest).toString('latin1'),
  };
}

const bytesOf = (text: string) => Buffer.from(text, 'latin1');
const whole = (text: string) => read([bytesOf(text)]);

const OK = 'HTTP/1.1 200 OK\r\n';

test.each<[string, string, Partial<Reading>]>([
  ['a length', `${OK}Content-Length: 3\r\n\r\nabc`, { body: 'abc', end: 'framed true, kept true' }],
  ['no body', `${OK}content-length: 0\r\n\r\n`, { body: '', end: 'framed true, kept true' }],
  [
    'chunks, an extension and trailers',
    `${OK}transfer-encoding: Chunked\r\n\r\n3;a="b c"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nx-sum: 1\r\n\r\n`,
    { body: 'abc0123456789', end: 'framed true, kept true' },
  ],
  ['the end of the connection', `${OK}a: b\r\n\r\nabc`, { body: 'abc', end: 'framed false, kept false' }],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204, end: 'framed true, kept true' }],
  ['204 with a length', 'HTTP/1.1 204 x\r\ncontent-length: 3\r\n\r\n', { end: 'framed true, kept false' }],
  ['no reason phrase', 'HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n', { status: 200 }],
  ['close', `${OK}connection: a, Close\r\ncontent-length: 0\r\n\r\n`, { end: 'framed true, kept false' }],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na', { body: 'a', end: 'framed true, kept false' }],
  [
    'HTTP/1.0 with keep-alive',
    'HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 0\r\n\r\n',
    { end: 'framed true, kept true' },
  ],
  [
    'interim answers',
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\na: b\r\n\r\n${OK}\r\nabc`,
    { interim: 2, body: 'abc' },
  ],
  ['bytes after the end', `${OK}content-length: 1\r\n\r\nabHTTP`, { body: 'a', rest: 'bHTTP' }],
  [
    'repeated headers, headers without a value, and headers named like members of objects',
    `${OK}a: 1\r\nA:2\r\na:\t3 \r\nb:\r\nconstructor: c\r\n__proto__: d\r\ncontent-length:0\r\n\r\n`,
    { headers: { a: ['1', '2', '3'], b: '', constructor: 'c', 'content-length': '0' } },
  ],
])('an answer with %s is read', (_what, text, expected) => {
  expect(whole(text)).toMatchObject(expected);
});

const header = (line: string, body = '') => `${OK}${line}\r\n\r\n${body}`;
const chunks = (text: string) => header('transfer-encoding: chunked', text);
const REFUSED: [string, string][] = [
  ...['+1', '-1', '0x1', '1 1', '1,1', '', '1e0', '٣', '9'.repeat(16)].map((length): [string, string] => [
    `a length of "${length}"`,
    header(`content-length: ${length}`, 'a'),
  ]),
  ['a length and a coding', header('content-length: 1\r\ntransfer-encoding: chunked', '1\r\na\r\n0\r\n\r\n')],
  ['a length and a transfer coding', header('transfer-encoding: chunked\r\ncontent-length: 1', '1\r\na\r\n0\r\n\r\n')],
  ['two different lengths', header('content-length: 1\r\ncontent-length: 2', 'ab')],
  ['one length twice', header('content-length: 1\r\ncontent-length: 1', 'a')],
  ...['gzip, chunked', 'chunked, chunked', 'identity', 'xchunked', 'chunked;q=1', '', '"chunked"', 'chunked,'].map(
    (coding): [string, string] => [`a coding of "${coding}"`, header(`transfer-encoding: ${coding}`, '0\r\n\r\n')],
  ),
  ['a transfer coding twice', header('transfer-encoding: chunked\r\ntransfer-encoding: chunked', '0\r\n\r\n')],
  ['a transfer coding in HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['a folded header', header('a: b\r\n c\r\ncontent-length: 0')],
  ['a folded header by a tab', header('a: b\r\n\tc\r\ncontent-length: 0')],
  ['a space before a colon', header('content-length : 0')],
  ['a header without a colon', header('abc\r\ncontent-length: 0')],
  ['a header without a name', header(': abc\r\ncontent-length: 0')],
  ['a name with a space', header('a b: c\r\ncontent-length: 0')],
  ...['\0', '\r', '\n', '\x7f', '\x0b'].map((character): [string, string] => [
    `a header with ${JSON.stringify(character)}`,
    header(`a: b${character}c\r\ncontent-length: 0`),
  ]),
  ['a status line with a control character', 'HTTP/1.1 200 a\0b\r\ncontent-length: 0\r\n\r\n'],
  ['lines that end with a line feed', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n'],
  ['lines that end with a carriage return', 'HTTP/1.1 200 OK\rcontent-length: 0\r\r'],
  ['1,001 headers', header(`${'a:\r\n'.repeat(1_000)}content-length: 0`)],
  ['16 KB of headers', header(`${`a: ${'b'.repeat(999)}\r\n`.repeat(17)}content-length: 0`)],
  ['a header of 16 KB', header(`a: ${'b'.repeat(16 * 1024)}\r\ncontent-length: 0`)],
  ...['099', '600', '999', '20', '2000', '2x0', '-20', '', '101'].map((status): [string, string] => [
    `the status "${status}"`,
    `HTTP/1.1 ${status} x\r\ncontent-length: 0\r\n\r\n`,
  ]),
  ...['HTTP/2.0', 'HTTP/0.9', 'HTTP/1.2', 'HTTP/1.10', 'http/1.1', 'HTTP/1', 'ICY', ''].map(
    (version): [string, string] => [`the version "${version}"`, `${version} 200 OK\r\ncontent-length: 0\r\n\r\n`],
  ),
  ['an empty line before it', `\r\n${OK}content-length: 0\r\n\r\n`],
  ['a space before it', ` ${OK}content-length: 0\r\n\r\n`],
  ['an interim answer with a body', `HTTP/1.1 103 x\r\ncontent-length: 1\r\n\r\n${OK}content-length: 0\r\n\r\n`],
  ...['', ' 1', '1 ', '+1', '-1', '0x1', 'g', '1\n', '0'.repeat(13) + 1, 'f'.repeat(17), ';a=b', '1\r;'].map(
    (size): [string, string] => [`a chunk size of ${JSON.stringify(size)}`, chunks(`${size}\r\na\r\n0\r\n\r\n`)],
  ),
  ['an extension of 1,025 bytes', chunks(`1;${'a'.repeat(1_025)}\r\na\r\n0\r\n\r\n`)],
  ['a line feed in an extension', chunks('1;a\nb\r\na\r\n0\r\n\r\n')],
  ['a chunk longer than its size', chunks('1\r\nab\r\n0\r\n\r\n')],
  ['a chunk that ends with a line feed', chunks('1\r\na\n0\r\n\r\n')],
  ['trailers with a space before a colon', chunks('0\r\na : b\r\n\r\n')],
  ['trailers with a line feed', chunks('0\r\na: b\nc: d\r\n\r\n')],
  ['16 KB of trailers', chunks(`0\r\n${`a: ${'b'.repeat(999)}\r\n`.repeat(17)}\r\n`)],
  ['a body that breaks off', header('content-length: 5', 'abc')],
  ['chunks that break off', chunks('5\r\nabc')],
  ['chunks without the last one', chunks('3\r\nabc\r\n')],
  ['trailers without an end', chunks('3\r\nabc\r\n0\r\na: b\r\n')],
  ['a head that breaks off', `${OK}content-length: 0\r\n`],
  ['nothing', ''],
];
test.each(REFUSED)('an answer with %s is refused', (_what, text) => {
  expect(whole(text).end).toBe('failed');
});

test('a head that cannot become a valid one is refused before its line ends', () => {
  for (const text of ['SSH-2.0-OpenSSH', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n', 'HTTP/2', '\x15\x03\x01\x00\x02']) {
    const parser = new ResponseParser();
    parser.read(bytesOf(text), 0, text.length, 1);
    expect(parser.failure).toBeDefined();
  }
});

const token = fc.stringMatching(/^[A-Za-z-]{1,12}$/);
const value = fc.stringMatching(/^[\x21-\x7e\x80-\xff][\x20-\x7e\x80-\xff\t]{0,20}$/);
const headers = fc.array(
  fc.tuple(token, value).filter(([name]) => !/^(content-length|transfer-encoding)$/i.test(name)),
  { maxLength: 6 },
);
const data = fc.string({ unit: 'binary-ascii', maxLength: 60 });
const chunkedBody = fc
  .tuple(
    fc.array(
      data.filter((text) => text !== ''),
      { maxLength: 8 },
    ),
    fc.constantFrom('', ';a', ';a="b"'),
    headers,
  )
  .map(([parts, extension, trailers]) => {
    const lines = parts.map((part) => `${part.length.toString(16)}${extension}\r\n${part}\r\n`);
    return `transfer-encoding: chunked\r\n\r\n${lines.join('')}0\r\n${linesOf(trailers)}\r\n`;
  });
const linesOf = (list: readonly (readonly [string, string])[]) =>
  list.map(([name, text]) => `${name}: ${text}\r\n`).join('');
const answer = fc
  .tuple(
    fc.constantFrom('', 'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'),
    fc.constantFrom('HTTP/1.1 200 OK', 'HTTP/1.1 429 ', 'HTTP/1.0 200 OK', 'HTTP/1.1 204 x', 'HTTP/1.1 500'),
    headers,
    fc.oneof(
      chunkedBody,
      data.map((text) => `content-length: ${text.length}\r\n\r\n${text}`),
      data.map((text) => `\r\n${text}`),
    ),
    fc.constantFrom('', '', 'HTTP/1.1 200 OK\r\n\r\n'),
  )
  .map(([interim, status, list, body, rest]) => `${interim}${status}\r\n${linesOf(list)}${body}${rest}`);
/** The same with some bytes changed, removed or repeated: mostly refused. */
const broken = fc
  .tuple(
    answer,
    fc.array(fc.tuple(fc.nat(400), fc.constantFrom('', '\r', '\n', '\0', ' ', ':', '0', 'f', ';', '\r\n')), {
      maxLength: 3,
    }),
  )
  .map(([text, changes]) => changes.reduce((now, [at, what]) => now.slice(0, at) + what + now.slice(at + 1), text));
const cuts = fc.array(fc.nat(600), { maxLength: 12 });

function splitAt(text: string, places: readonly number[]): Buffer[] {
  const bounds = [0, ...places.filter((place) => place < text.length).sort((a, b) => a - b), text.length];
  return bounds.slice(1).map((end, nth) => bytesOf(text.slice(bounds[nth], end)));
}

describe('the same bytes are read the same, however they are split', () => {
  test.each([
    ['answers', answer],
    ['broken answers', broken],
  ])('%s', (_what, texts) => {
    fc.assert(
      fc.property(texts, cuts, fc.integer({ min: 1, max: 4 }), (text, places, piecesMax) => {
        const expected = whole(text);
        expect(read(splitAt(text, places))).toEqual(expected);
        expect(read(splitAt(text, places), piecesMax)).toEqual(expected);
        expect(read([...bytesOf(text)].map((byte) => Buffer.from([byte])))).toEqual(expected);
      }),
      { numRuns: inTier(100, 10_000) },
    );
  });

  test('refused answers, byte by byte', () => {
    for (const [what, text] of REFUSED) {
      expect([what, read([...bytesOf(text)].map((byte) => Buffer.from([byte]))).end]).toEqual([what, 'failed']);
    }
  });
});
