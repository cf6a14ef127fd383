import { randomFillSync } from 'node:crypto';

const IDS = 128;
const ID_BYTES = 16;
const ID_CHARS = 36;
const DIGITS = Buffer.from('0123456789abcdef');
const DASH = 0x2d;
const DASHES_BEFORE: ReadonlySet<number> = new Set([4, 6, 8, 10]);

/** Ids are made in blocks: a text that is joined from its digits takes ten times the memory. */
const random = Buffer.alloc(IDS * ID_BYTES);
const stock = Buffer.alloc(IDS * ID_CHARS);
let drawn = stock.length;

function fill(): void {
  randomFillSync(random);
  let at = 0;
  for (let from = 0; from < random.length; from += ID_BYTES) {
    random[from + 6] = (random[from + 6]! & 0x0f) | 0x40;
    random[from + 8] = (random[from + 8]! & 0x3f) | 0x80;
    for (let nth = 0; nth < ID_BYTES; nth += 1) {
      if (DASHES_BEFORE.has(nth)) stock[at++] = DASH;
      const byte = random[from + nth]!;
      stock[at++] = DIGITS[byte >> 4]!;
      stock[at++] = DIGITS[byte & 0x0f]!;
    }
  }
  drawn = 0;
}

/** A new random UUID (RFC 9562, version 4). */
export function newRequestId(): string {
  if (drawn === stock.length) fill();
  drawn += ID_CHARS;
  return stock.toString('latin1', drawn - ID_CHARS, drawn);
}
