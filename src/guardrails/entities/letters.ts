import { lookupTable } from '../../schemas/lookup-table.ts';

/** Separates words. */
export const BREAK = 0;
/** Invisible and not a separator: zero-width characters, soft hyphens, combining marks, variation selectors. */
export const UNSEEN = 1;
/** Half of a surrogate pair. */
export const HALF = 2;
/** A letter of a script without spaces between words. */
export const UNSPACED = 3;

/** Letters that look like Latin ones: Cyrillic, Greek, Armenian, Cherokee, small capitals and phonetic letters (Unicode, confusables.txt). */
const LOOK_ALIKES: Readonly<Record<string, string>> = lookupTable({
  a: 'аАαΑɑᴀꭺⱥ',
  b: 'вВβΒЬьʙƅᏏᖯ',
  c: 'сСϲϹᴄⅽᏟ',
  d: 'ԁɗđᴅⅾᎠ',
  e: 'еЕёЁεΕєЄᴇҽəɛᎬ',
  f: 'ғϝƒꜰꞙ',
  g: 'ɡɢցԍᏀǥ',
  h: 'һнНΗհʜħᎻ',
  i: 'іІιΙӏɩɪıℹⅰӀᎥ',
  j: 'јЈϳʝᴊᎫ',
  k: 'кКκΚᴋⱪᏦ',
  l: 'ⅼʟłɭլᏞ',
  m: 'мМΜᴍⅿᎷ',
  n: 'ηΝոɴɳպ',
  o: 'оОοΟσօᴏөØøⲟ',
  p: 'рРρΡᴘⲣᏢ',
  q: 'ԛգʠ',
  r: 'гʀɾɼꭇᎡ',
  s: 'ѕЅꜱʂᏚƽ',
  t: 'тТτΤᴛŧƭᎢ',
  u: 'υսᴜʋц',
  v: 'νѵᴠⅴᏙ',
  w: 'ԝшωᴡѡᎳ',
  x: 'хХχΧⅹ',
  y: 'уУүγΥʏყ',
  z: 'ΖᴢʐᏃ',
  '|': '｜∣ǀ',
  '<': '‹＜〈⟨《',
  '>': '›＞〉⟩》',
});

const LATIN = new Map(
  Object.entries(LOOK_ALIKES).flatMap(([letter, alike]) => [...alike].map((one) => [one, letter] as const)),
);

const unseen = /\p{Cf}|\p{Mn}/u;
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
const inWord = /[\p{L}\p{N}]/u;

/** The character that a detector reads: the lower-case Latin letter or digit that it is or looks like, otherwise itself in lower case. */
function readAs(character: string): string {
  const [plain = character] = character.normalize('NFKD').toLowerCase();
  return LATIN.get(character) ?? LATIN.get(plain) ?? plain;
}

function makeTable(): Uint16Array {
  const table = new Uint16Array(65_536);
  for (let code = 0; code < 65_536; code += 1) {
    const character = String.fromCharCode(code);
    if (code >= 0xd800 && code <= 0xdfff) table[code] = HALF;
    else if (code >= 0x80 && unseen.test(character)) table[code] = UNSEEN;
    else if (code >= 0x1100 && unspaced.test(character)) table[code] = UNSPACED;
    else if (inWord.test(character) || (code >= 0x2100 && inWord.test(character.normalize('NFKC')[0] ?? ' '))) {
      table[code] = readAs(character).charCodeAt(0);
    }
  }
  return table;
}

let table: Uint16Array | undefined;

/**
 * Maps each UTF-16 code unit to `BREAK`, `UNSEEN`, `HALF`, `UNSPACED`, or the code unit of a lower-case letter or digit.
 * Created on first use, which takes some milliseconds.
 */
export function letters(): Uint16Array {
  table ??= makeTable();
  return table;
}

/** The Latin letter or digit of which a supplementary character is a variant, otherwise `BREAK`. */
export function letterBeyond(point: number): number {
  // Variants of letters and digits for mathematics, and letters in squares and circles.
  if ((point < 0x1d400 || point > 0x1d7ff) && (point < 0x1f110 || point > 0x1f189)) {
    return point >= 0xe0000 && point <= 0xe01ef ? UNSEEN : BREAK;
  }
  if (point >= 0x1f130) {
    const letter = (point - 0x1f130) % 0x20;
    return letter < 26 ? 0x61 + letter : BREAK;
  }
  const code = readAs(String.fromCodePoint(point).normalize('NFKC')).charCodeAt(0);
  return letters()[code] ?? BREAK;
}

/** Folds the characters of a pattern or a text of the gateway like those of a word. ASCII stays unchanged. */
export function folded(text: string): string {
  return text.replace(/[^\0-\x7f]/g, (character) => {
    const code = letters()[character.charCodeAt(0)] ?? BREAK;
    return code > UNSPACED ? String.fromCharCode(code) : character;
  });
}

/** Folds a text to lower case, with look-alikes and full-width signs as ASCII. Each code unit stays one code unit. */
export function unitsFolded(text: string): string {
  if (/^[\0-\x7f]*$/.test(text)) return text.toLowerCase();
  const all = letters();
  let out = '';
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    const letter = code < 0x80 ? BREAK : (all[code] ?? BREAK);
    if (letter > UNSPACED) out += String.fromCharCode(letter);
    else if (code >= 0xff01 && code <= 0xff5e) out += String.fromCharCode(code - 0xfee0).toLowerCase();
    else
      out +=
        code < 0x80
          ? String.fromCharCode(code).toLowerCase()
          : (LATIN.get(text[index] ?? '') ?? String.fromCharCode(code));
  }
  return out;
}
