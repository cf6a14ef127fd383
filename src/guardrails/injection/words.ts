import { lookupTable } from '../../schemas/lookup-table.ts';
import { folded, letters } from '../entities/letters.ts';

/** Roles of words in phrases, as bits. The rules read the surroundings of two words with matching roles close to each other. */
const roles = {
  /** Undoes or breaks something. */
  undo: 1,
  /** Instructions of a model. */
  orders: 2,
  /** Verbs of telling and showing. */
  show: 4,
  /** Words for the prompt of a model. */
  prompt: 8,
  /** Words for the position of earlier instructions. */
  where: 16,
  kind_of_mode: 32,
  mode: 64,
  authority: 128,
  override: 256,
  model: 512,
  longer: 1_024,
  strong: 2_048,
  /** Selects a stretch without a second word. */
  alone: 4_096,
  /** Names a speaker, if next to a formatting sign. */
  speaker: 8_192,
} as const;
export const ALONE = roles.alone;
export const SPEAKER = roles.speaker;

const LISTS: Readonly<Partial<Record<keyof typeof roles, string>>> = {
  undo: 'keine keinerlei ohne compte suis suivez sans aucune aucun sin ninguna ningún sem nenhuma ignore ignoring ignores disregard disregarding forget forgetting neglect overlook dismiss discard abandon unlearn override overrides overriding overrule overwrite supersede supersedes void nullify invalidate cancel erase delete clear wipe reset revoke bypass bypassing circumvent circumventing evade sidestep violate disobey break drop skip stop cease disable disabling deactivate suspend remove removing lift unlock turn switch shut aside away never without free bound unbound limited restricted constrained shed escape not longer no dont don follow following obey replace replaces adopt receive here these your new',
  orders:
    'prompt prompts regeln limites limite límites reglas regole instruction instructions directive directives guideline guidelines guidance orders rules constraints restriction restrictions policy policies programming training protocol protocols limitation limitations guardrails filters filter safeguards safety ethics ethical moral morals morality censorship moderation alignment boundaries conditioning',
  strong: 'ignore ignoring bypass override overriding disregard circumvent forget overrule overwrite delete',
  show: 'reveal revealing show print display output repeat tell share leak expose dump disclose divulge recite echo return provide write state list quote paste copy give say read translate summarize encode spell send describe type what whats which text texts content contents copy my reproduce exfiltrate lautet zeig zeige zeigen nenne verrate gib wiederhole montre montrez donne quel quelles dis répète révèle muestra muestrame dime cuál cuáles imprime repite mostre mostra qual quais imprima repita mostrami dimmi stampa ripeti покажи выведи повтори напиши раскрой',
  prompt:
    'instruction instructions prompt prompts directive directives guidelines rules system preamble preprompt told',
  where: 'conversation above apply preceding verbatim everything told learned know',
  kind_of_mode:
    'developer dev god debug admin administrator sudo root maintenance dan unsafe chaos opposite diagnostic special secret freedom filter override',
  mode: 'mode',
  authority:
    'instruction system admin administrator developer emergency security root priority safety sudo master operator',
  override: 'override',
  model: 'ai assistant chatgpt claude gpt gemini llama chatbot bot copilot language who',
  longer: 'longer forget disregard ignore being malicious',
  alone:
    'jailbreak jailbroken jailbreaking jailbreaked machiavellian norms dan unrestricted unfiltered uncensored unbound amoral unethical immoral evil lawless rogue unaligned unhinged henceforth anything ignorieren ignoriere ignorier ignoriert vergiss vergessen vergesse missachte missachten umgehe umgehen überschreibe verwirf befolge systemprompt systemprompts systemanweisung systemanweisungen systemnachricht anweisung anweisungen instruktionen einschränkungen beschränkungen entwicklermodus ignorez ignorer oublie oubliez oublier oublies néglige négligez contourne contournez abstraction consignes révèle révélez affiche affichez système développeur ignora ignorar ignorad ignoren olvida olvide olvidar olvidad olvídate descarta desestima omite omiso instrucciones indicaciones directrices revela revele muéstrame sigas restricciones limitaciones desarrollador ignorem esqueça esqueçam esquece esquecer desconsidere desconsidera desconsiderar descarte instruções orientações diretrizes restrições limitações siga dimentica dimenticate trascura istruzioni direttive rivela игнорируй игнорируйте проигнорируй проигнорируйте игнорировать забудь забудьте отбрось отбросьте отмени отмените пренебреги внимания следуй следуйте соблюдай инструкции инструкций инструкцию указания промпт промпта подсказку ограничений фильтров разработчика',
  speaker:
    'system sys admin administrator developer assistant inst root instruction instructions prompt directive directives orders override message',
};

/** For each role, the roles that form a phrase with it. */
const PARTNERS: Readonly<Partial<Record<keyof typeof roles, number>>> = {
  undo: roles.orders | roles.where,
  orders: roles.undo,
  show: roles.prompt | roles.where,
  prompt: roles.show | roles.strong,
  where: roles.undo | roles.show,
  strong: roles.prompt,
  kind_of_mode: roles.mode,
  mode: roles.kind_of_mode,
  authority: roles.override,
  override: roles.authority,
  model: roles.longer,
  longer: roles.model,
};

const roleNames = Object.keys(roles) as (keyof typeof roles)[];
const maskByWord = new Map<string, number>();
for (const role of roleNames) {
  for (const word of LISTS[role]?.split(' ') ?? []) {
    const read = folded(word);
    maskByWord.set(read, (maskByWord.get(read) ?? 0) | roles[role]);
  }
}

/** For each set of roles (the index), the roles that form a phrase with one of them. */
export const PARTNERS_OF: Int32Array = Int32Array.from({ length: 2 * roles.speaker }, (_, mask) =>
  roleNames.reduce((partners, role) => ((mask & roles[role]) === 0 ? partners : partners | (PARTNERS[role] ?? 0)), 0),
);

/** Words of the rules without a role. */
const OTHER_WORDS =
  'previous prior earlier preceding existing current original initial hidden internal messages messages everything pretend roleplay simulate respond persona enable activate enter command commands context human user limits previas anteriores anterior précédentes antérieures vorherigen vorherige bisherigen obigen предыдущие предыдущих reglas regras regole règles sistema';

/** The known words in their folded form (`folded`). */
export const KNOWN_WORDS: ReadonlySet<string> = new Set([...maskByWord.keys(), ...folded(OTHER_WORDS).split(' ')]);

/** Words that indicate an injection if two of them are close together and one is scrambled. */
export const SUSPICIOUS_WORDS: ReadonlySet<string> = new Set(
  'ignore bypass override reveal delete system prompt instructions'.split(' '),
);

/** The first letter, the sorted inner letters, the last letter: equal for all scrambled forms of a word. */
function scrambleOf(word: string): string {
  return `${word[0]}${[...word.slice(1, -1)].sort().join('')}${word.at(-1)}`;
}

const SCRAMBLED_CHARS_MIN = 5;
const scrambles = new Map(
  [...KNOWN_WORDS].filter((word) => word.length >= SCRAMBLED_CHARS_MIN).map((word) => [scrambleOf(word), word]),
);

/** The first letter, the last letter and the length: a cheap check that excludes most words. */
function frameOf(word: string): number {
  return (word.charCodeAt(0) * 65_536 + word.charCodeAt(word.length - 1)) * 16 + word.length;
}
const frames = new Set([...scrambles.values()].map(frameOf));

/** The known word of which a word is a scrambled form. Undefined if there is none. */
export function unscrambled(word: string): string | undefined {
  if (word.length < SCRAMBLED_CHARS_MIN || word.length > 16 || !frames.has(frameOf(word))) return undefined;
  return scrambles.get(scrambleOf(word));
}

/** Digits and signs in place of letters. `1` can be `i` or `l`. */
const SIGN_LETTERS: Readonly<Record<string, string>> = lookupTable({
  '0': 'o',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '8': 'b',
  '@': 'a',
  $: 's',
});

/** The known word that is spelled with digits in place of letters: `1gn0r3`. Undefined if there is none. */
export function withoutDigits(word: string): string | undefined {
  if (word.length < 2 || word.length > 24 || !/[01345789@$]/.test(word)) return undefined;
  const plain = word.replace(/[034578@$]/g, (sign) => SIGN_LETTERS[sign] ?? sign);
  for (const letter of ['i', 'l']) {
    const read = plain.replaceAll('1', letter);
    if (KNOWN_WORDS.has(read) || SIGNED_WORDS.has(read)) return read;
  }
  return undefined;
}

/** Short words of the rules that are recognized only if spelled with digits. */
const SIGNED_WORDS: ReadonlySet<string> = new Set(
  'no not have show me an with without pretend act as all the your my our these those of and now you are me from past to'.split(
    ' ',
  ),
);

/**
 * The weight of a letter in the sum by which words are looked up. A sum does not depend on the order of letters, and
 * digits have the weight of the letters they replace: `ignore`, `ingore` and `1gn0r3` have the same sum.
 */
function weightOf(code: number): number {
  const sign = String.fromCharCode(code);
  const letter = sign === '1' || sign === 'l' ? 'i' : (SIGN_LETTERS[sign] ?? sign);
  // A multiplicative hash. It never equals one of the marks below 4.
  return (Math.imul(letter.charCodeAt(0), 0x9e3779b1) >>> 1) | 4;
}

const SLOTS = 8_192;

export interface WordTable {
  /** For each UTF-16 code unit a mark of letters.ts or the weight of a letter. */
  weights: Int32Array;
  /** The roles of the word with this sum, first and last weight. 0 if there is none; false matches are rare. */
  rolesOf(sum: number, first: number, last: number): number;
}

let cachedTable: WordTable | undefined;

/** The words with roles, indexed by their sums. Created on first use. */
export function wordTable(): WordTable {
  cachedTable ??= makeWordTable();
  return cachedTable;
}

function makeWordTable(): WordTable {
  const all = letters();
  const weights = new Int32Array(65_536);
  for (let code = 0; code < 65_536; code += 1) {
    const letter = all[code] ?? 0;
    weights[code] = letter > 3 ? weightOf(letter) : letter;
  }
  for (const sign of ['@', '$']) weights[sign.charCodeAt(0)] = weightOf(sign.charCodeAt(0));
  const keys = new Int32Array(SLOTS);
  const masks = new Int32Array(SLOTS);
  const keyOf = (sum: number, first: number, last: number) => (sum + Math.imul(first, 7) + Math.imul(last, 13)) | 1;
  const slotOf = (key: number) => (key ^ (key >>> 13)) & (SLOTS - 1);
  for (const [known, mask] of maskByWord) {
    const word = [...known].map((letter) => weights[letter.charCodeAt(0)] ?? 0);
    const sum = word.reduce((total, weight) => (total + weight) | 0, 0);
    const key = keyOf(sum, word[0] ?? 0, word.at(-1) ?? 0);
    let slot = slotOf(key);
    while (keys[slot] !== 0 && keys[slot] !== key) slot = (slot + 1) & (SLOTS - 1);
    keys[slot] = key;
    masks[slot] = (masks[slot] ?? 0) | mask;
  }
  return {
    weights,
    rolesOf(sum, first, last) {
      const key = keyOf(sum, first, last);
      let slot = slotOf(key);
      while (keys[slot] !== 0) {
        if (keys[slot] === key) return masks[slot] as number;
        slot = (slot + 1) & (SLOTS - 1);
      }
      return 0;
    },
  };
}
