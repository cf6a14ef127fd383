import { folded, letters } from './letters.ts';

/**
 * Words that the rules of injection.ts are made of, by what they say. `*` marks those that are rare enough to be looked
 * for: each rule has one of them.
 */
const LISTS = {
  ignore:
    'ignore* ignoring* ignores* ignored disregard* disregarding* forget* forgetting* neglect* overlook* dismiss* discard* abandon* unlearn* override* overrides* overriding* overrule* overwrite* supersede* supersedes* void nullify* invalidate* cancel erase delete clear wipe reset revoke bypass* bypassing* circumvent* circumventing* evade* sidestep* violate* disobey* break drop skip stop cease disable* disabling* deactivate* suspend remove lift unlock* turn switch',
  orders:
    'instruction* instructions* prompt* prompts* directive* directives* guideline* guidelines* command commands order orders rules* rule constraint constraints* restriction restrictions* policy policies programming* training protocol protocols limitation limitations* limits guardrails* filter filters* safeguards* safety* ethics* ethical* moral* morals* censorship* moderation* alignment*',
  prior:
    'previous prior above earlier preceding foregoing former existing current original initial everything anything',
  reveal:
    'reveal* revealing* show print display output repeat tell share leak* expose disclose* divulge* recite* verbatim* system* hidden secret internal message messages',
  mode: 'developer mode jailbreak* jailbroken* jailbreaking* unrestricted* unfiltered* uncensored* unbound* amoral* unethical* evil* malicious dan* stan* chatgpt* persona* pretend* roleplay* simulate* longer* override anything* machiavellian* enter enable activate act',
  marks: 'assistant* user inst* sys* human admin* administrator*',
  german:
    'ignoriere* ignorier* ignorieren* ignoriert* vergiss* vergessen* vergesse* missachte* missachten* umgehe* umgehen* uberschreibe* anweisung* anweisungen* instruktion* instruktionen* systemprompt* systemanweisung* systemanweisungen* systemnachricht* vorgaben* einschrankungen* beschrankungen* entwicklermodus* vorherigen vorherige bisherigen bisherige obigen alle deine ihre',
  french:
    'ignorez* ignorer* oublie* oubliez* oublier* oublies* neglige* negligez* contourne* contournez* abstraction* consigne* consignes* directive* directives* regles* revele* revelez* systeme* precedentes* precedents* precedente* anterieures* initiales restrictions developpeur*',
  spanish:
    'ignora* ignorar* ignorad* ignoren* olvida* olvide* olvidar* olvidate* descarta* desestima* omite* caso instrucciones* indicaciones* directrices* directivas* normas reglas* anteriores* previas* sistema* restricciones* desarrollador*',
  portuguese:
    'ignorem* esqueca* esquece* esqueca* esquecer* desconsidere* desconsidera* desconsiderar* descarte* instrucoes* orientacoes* diretrizes* regras* revele* restricoes*',
  italian: 'dimentica* dimenticate* trascura* istruzioni* direttive* regole* precedenti* rivela*',
  russian:
    'игнорируй* игнорируйте* проигнорируй* проигнорируйте* игнорировать* забудь* забудьте* отбрось* отбросьте* пренебреги* инструкции* инструкций* инструкцию* указания* указаний* правила* правил* команды промпт* промпта* директивы* ограничений* ограничения* системный* системную* системные* предыдущие предыдущих разработчика*',
} as const;

/** English words whose letters between the first and the last may stand in a wrong order: `ingore`. */
const entries = Object.values(LISTS).flatMap((list) => list.split(' '));

/** The words that are known, as they are read (see `folded`). */
export const KNOWN_WORDS: ReadonlySet<string> = new Set(entries.map((entry) => folded(entry.replace('*', ''))));

/** Those of the specification whose scrambled forms give an attempt away by themselves where two stand together (api-facts 8.5). */
export const TELLING_WORDS: ReadonlySet<string> = new Set(
  'ignore bypass override reveal delete system prompt instructions'.split(' '),
);

/** The first letter, the others sorted, the last one: the same for a word and for all that its inner letters can be put to. */
export function scrambleOf(word: string): string {
  return `${word[0]}${[...word.slice(1, -1)].sort().join('')}${word.at(-1)}`;
}

const SCRAMBLED_CHARS_MIN = 5;
const scrambles = new Map(
  [...KNOWN_WORDS].filter((word) => word.length >= SCRAMBLED_CHARS_MIN).map((word) => [scrambleOf(word), word]),
);

/** The known word whose inner letters a word has in another order; undefined: none, or it is one itself. */
export function unscrambled(word: string): string | undefined {
  if (word.length < SCRAMBLED_CHARS_MIN || word.length > 16) return undefined;
  return scrambles.get(scrambleOf(word));
}

/** Digits and signs that stand for letters; `1` for two. */
const SIGN_LETTERS: Readonly<Record<string, string>> = {
  '0': 'o',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '8': 'b',
  '@': 'a',
  $: 's',
};

/** The known word that is written with digits for letters: `1gn0r3`; undefined: none. */
export function withoutDigits(word: string): string | undefined {
  if (word.length < 2 || word.length > 24 || !/[01345789@$]/.test(word)) return undefined;
  const plain = word.replace(/[034578@$]/g, (sign) => SIGN_LETTERS[sign] ?? sign);
  for (const letter of ['i', 'l']) {
    const read = plain.replaceAll('1', letter);
    if (KNOWN_WORDS.has(read) || SIGNED_WORDS.has(read)) return read;
  }
  return undefined;
}

/** Small words of the rules, known only where digits stand in them. */
const SIGNED_WORDS: ReadonlySet<string> = new Set(
  'all the your my our these those of and now you are me from past to'.split(' '),
);

/**
 * What a letter adds to the sum by which a word is looked up. A sum does not know the order of the inner letters, and
 * takes digits for the letters that they stand for: `ignore`, `ingore` and `1gn0r3` have one.
 */
function weightOf(code: number): number {
  const sign = String.fromCharCode(code);
  const letter = sign === '1' || sign === 'l' ? 'i' : (SIGN_LETTERS[sign] ?? sign);
  // A multiplicative hash; never one of the marks below 4.
  return (Math.imul(letter.charCodeAt(0), 0x9e3779b1) >>> 1) | 4;
}

const SLOTS = 8_192;

export interface WordTable {
  /** By UTF-16 unit: a mark of letters.ts, or the weight of a letter. */
  weights: Int32Array;
  /** Whether the word with these first and last weights and this sum of all is looked for; hardly ever wrongly so. */
  isSought(sum: number, first: number, last: number): boolean;
}

let made: WordTable | undefined;

/** The words that are looked for, ready to be found by sums. */
export function wordTable(): WordTable {
  made ??= makeWordTable();
  return made;
}

function makeWordTable(): WordTable {
  const all = letters();
  const weights = new Int32Array(65_536);
  for (let code = 0; code < 65_536; code += 1) {
    const letter = all[code] ?? 0;
    weights[code] = letter > 3 ? weightOf(letter) : letter;
  }
  for (const sign of ['@', '$']) weights[sign.charCodeAt(0)] = weightOf(sign.charCodeAt(0));
  const slots = new Int32Array(SLOTS);
  const keyOf = (sum: number, first: number, last: number) => (sum + Math.imul(first, 7) + Math.imul(last, 13)) | 1;
  const slotOf = (key: number) => (key ^ (key >>> 13)) & (SLOTS - 1);
  for (const entry of entries) {
    if (!entry.endsWith('*')) continue;
    const word = [...folded(entry.slice(0, -1))].map((letter) => weights[letter.charCodeAt(0)] ?? 0);
    const sum = word.reduce((total, weight) => (total + weight) | 0, 0);
    const key = keyOf(sum, word[0] ?? 0, word.at(-1) ?? 0);
    let slot = slotOf(key);
    while (slots[slot] !== 0 && slots[slot] !== key) slot = (slot + 1) & (SLOTS - 1);
    slots[slot] = key;
  }
  return {
    weights,
    isSought(sum, first, last) {
      const key = keyOf(sum, first, last);
      let slot = slotOf(key);
      while (slots[slot] !== 0) {
        if (slots[slot] === key) return true;
        slot = (slot + 1) & (SLOTS - 1);
      }
      return false;
    },
  };
}
