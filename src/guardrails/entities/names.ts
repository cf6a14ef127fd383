import type { Entity } from './analyzer.ts';
import { AMBIGUOUS_FAMILY_NAMES, AMBIGUOUS_GIVEN_NAMES, FAMILY_NAMES, GIVEN_NAMES, NO_NAMES } from './name-words.ts';

/** Words of one text for which the library is asked whether they name a person, if no other rule decides. */
const NAME_LOOKUPS_MAX = 40;
/** The text around a word that is shown to the library that recognizes names. */
const NAME_CONTEXT_CHARS = 60;

/** The knowledge of names of a natural language library. */
export interface NameKnowledge {
  /** Takes a lower-case word. */
  isFirstName(word: string): boolean;
  isFamily(word: string): boolean;
  /** Whether a short text names this person. Called only for words that no other rule decides. */
  saysPerson(text: string, name: string): boolean;
}

interface Word {
  text: string;
  /** Lower case, without a possessive `'s`. */
  plain: string;
  start: number;
  end: number;
}

const CAPITAL = String.raw`\p{Lu}[\p{L}\p{M}’'-]{0,30}`;
const SHORT = String.raw`(?:(?<![\p{L}])(?:\p{Lu}|Dr|Mr|Mrs|Ms|Prof|Jr|Sr|Sra|Hr|Fr|Mme|Mlle|Dott|Sig|Ing|Rev|Lt|Col|Gen|Capt|Sgt|Dipl|med)\.)`;
const PARTICLE = "(?:von|van|vom|der|den|de|da|di|del|della|dos|das|du|la|le|bin|ibn|al|el|ter|ten|zu|zum|y|d’|d')";
/** Consecutive capitalized words with particles between them. Nested repeats are separated by a word, so matching is linear. */
const RUN = new RegExp(
  String.raw`(?<![\p{L}\p{N}_@/\\#$.-])(?:${SHORT}|${CAPITAL})(?:[ \u00a0]{1,2}(?:${PARTICLE}[ ]){0,2}(?:${SHORT}|${CAPITAL})){0,6}(?![\p{L}\p{N}_@/\\])`,
  'gu',
);
const WORD = /[\p{L}\p{M}][\p{L}\p{M}’'-]*\.?/gu;
const TITLE =
  /^(?:mr|mrs|ms|miss|dr|prof|professor|doctor|sir|madam|lady|lord|herr|herrn|frau|monsieur|madame|mme|mlle|señor|señora|sr|sra|senhor|senhora|dott|dottor|signor|signora|sig|rev|reverend|captain|capt|lt|col|gen|sgt|sergeant|officer|judge|senator|nurse|господин|госпожа|г-н|г-жа)\.?$/;
const INTRODUCED =
  /(?<![\p{L}\p{N}])(?:my (?:full |first |last |sur)?name(?:['’]s| is)|(?:his|her|their|your|the (?:patient|customer|client|user|employee|victim|tenant)['’]?s?) (?:full )?name is|i am called|call me|mein name ist|ich hei(?:ß|ss)e|je m['’]appelle|mon nom est|me llamo|mi nombre es|meu nome é|me chamo|mi chiamo|il mio nome è|mijn naam is|jag heter|nazywam się|benim adım|меня зовут|моё имя|мое имя)[:,]? {1,2}["“«]?((?:[\p{L}\p{M}’'-]{1,30}\.?)(?: [\p{L}\p{M}’'-]{1,30}\.?){0,3})/giu;
const GREETED =
  /(?:^|\n)[ \t>]{0,8}(?:dear|hi|hello|hey|hallo|liebe[r]?|sehr geehrte[r]?|bonjour|salut|ch[eè]re?|hola|querid[oa]|estimad[oa]|olá|car[oa]|ciao|gentile|cześć|привет|здравствуйте|уважаем(?:ый|ая)) (\p{Lu}[\p{L}\p{M}’'.-]{1,30}(?: \p{Lu}[\p{L}\p{M}’'.-]{0,30}){0,3})[ ]?(?=[,!:\n]|$)/giu;
const SIGNED =
  /(?:^|\n)[ \t>]{0,8}(?:(?:kind|best|warm|with kind|many)? ?regards|sincerely(?: yours)?|yours (?:truly|sincerely|faithfully)|best(?: wishes)?|cheers|(?:many )?thanks|thank you|(?:mit )?(?:freundlichen|besten|herzlichen|viele[n]?|liebe) grü(?:ß|ss)e[n]?|gruß|cordialement|bien à vous|saludos(?: cordiales)?|un saludo|atentamente|atenciosamente|abraços?|(?:cordiali )?saluti|с уважением|pozdrawiam)[,!.]?[ \t]{0,4}\r?\n\s{0,6}[-–—~]{0,2} ?(\p{Lu}[\p{L}\p{M}’'.-]{1,30}(?: (?:\p{Lu}[\p{L}\p{M}’'.-]{0,30}|von|van|de|da)){0,3})[ \t]{0,4}(?=[\r\n,]|$)/giu;
const TITLED =
  /(?<![\p{L}\p{N}])(?:mr\.?|mrs\.?|ms\.|miss|dr\.|prof\.|professor|doctor|señor(?:a|ita)?|sr\.|sra\.|don|doña|senhora?|signora?|sig\.|dott\.|monsieur|madame|herrn?|frau|господин|госпожа|доктор) {1,2}(\p{Lu}[\p{L}\p{M}’'-]{1,30}(?: \p{Lu}[\p{L}\p{M}’'-]{1,30}){0,2})/gu;
/** Names in scripts without capitals or spaces, in introductions, labels and forms of address. */
const UNSPACED =
  /(?<=我叫|我的名字是|我是|姓名[：:]\s?|名字[：:]\s?|客户[：:]\s?|患者[：:]\s?)[\p{Script=Han}]{2,3}(?=[，,。.\s！!]|$)|(?<=私の名前は|名前[：:]\s?|氏名[：:]\s?|患者名[：:]\s?)[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]{2,8}?(?=です|と申|[、。\s]|$)|(?<![\p{Script=Han}])[\p{Script=Han}]{2,5}(?=さん|先生|女士)|(?<=제 이름은 |이름[:：]\s?)[\p{Script=Hangul}]{2,4}?(?=입니다|이에요|[,.\s]|$)/gu;
/** Endings of Russian patronymics and family names. */
const PATRONYMIC = /(?:ович|евич|ична|овна|евна|ovich|evich|ovna|evna)$/;
const RUSSIAN_FAMILY = /^\p{Lu}.*(?:ов|ова|ев|ева|ёв|ёва|ин|ина|ский|ская|цкий|цкая|енко|чук)$/u;

const CAN_HOLD =
  /\p{Lu}\p{Ll}|[\p{Script=Han}\p{Script=Hangul}]|name|call me|hei(?:ß|ss)e|llamo|chiamo|appelle|зовут|adım/u;

/** Whether a text can contain a name. Most texts of code or data cannot. */
export function canHoldName(text: string): boolean {
  return CAN_HOLD.test(text);
}

/** Finds the names of people in a text. A given name alone counts if it is unambiguous or part of a form of address. */
export function findNames(text: string, knowledge: NameKnowledge): Entity[] {
  const names: Entity[] = [];
  const isFirstName = (plain: string) =>
    parts(plain).some((part) => GIVEN_NAMES.has(part) || knowledge.isFirstName(part));
  const isFamily = (plain: string) => parts(plain).some((part) => FAMILY_NAMES.has(part) || knowledge.isFamily(part));
  const reader: NameReader = { text, knowledge, isFirstName, isFamily, lookups: 0, cachedAnswers: new Map() };
  for (const match of text.matchAll(RUN)) {
    for (const { start, end } of namesOfRun(wordsOf(match[0], match.index), reader)) {
      names.push({ start, end, slug: 'person-name' });
    }
  }
  for (const pattern of [INTRODUCED, GREETED, SIGNED, TITLED]) {
    for (const match of text.matchAll(pattern)) {
      const phrase = match[1] ?? '';
      const words = wordsOf(phrase, match.index + match[0].lastIndexOf(phrase));
      const name = introduced(words, pattern === INTRODUCED ? isFirstName : () => false);
      if (name !== undefined) names.push({ ...name, slug: 'person-name' });
    }
  }
  for (const { index, 0: match } of text.matchAll(UNSPACED)) {
    names.push({ start: index, end: index + match.length, slug: 'person-name' });
  }
  return names;
}

interface NameReader {
  text: string;
  knowledge: NameKnowledge;
  isFirstName(plain: string): boolean;
  isFamily(plain: string): boolean;
  lookups: number;
  cachedAnswers: Map<string, boolean>;
}

type Place = Pick<Word, 'start' | 'end'>;

function parts(plain: string): string[] {
  return plain.includes('-') ? [plain, ...plain.split('-')] : [plain];
}

function wordsOf(run: string, at: number): Word[] {
  return [...run.matchAll(WORD)].map(({ index, 0: text }) => {
    const owned = text.replace(/['’]s$/, '');
    return { text, plain: owned.toLowerCase().replace(/\.$/, ''), start: at + index, end: at + index + owned.length };
  });
}

const isInitial = ({ plain, text }: Word) => plain.length === 1 && /^\p{Lu}/u.test(text);
const isParticle = ({ text }: Word) => /^\p{Ll}/u.test(text);
const isNoName = ({ plain, text }: Word) =>
  NO_NAMES.has(plain) || /\p{Ll}\p{Lu}/u.test(text.replace(/^(?:Mc|Mac|O['’]|D['’]|De|Le|La|Van)/, ''));

/** The names in consecutive words: after a title, with a known given or family name, or confirmed by the library. */
function namesOfRun(words: readonly Word[], reader: NameReader): Place[] {
  const places: Place[] = [];
  for (let at = 0; at < words.length; ) {
    const length = nameLength(words, at, reader);
    if (length > 0) {
      places.push({ start: words[at]?.start ?? 0, end: words[at + length - 1]?.end ?? 0 });
      at += length;
    } else at += 1;
  }
  return places;
}

/** The number of words at an index that are a name. */
function nameLength(words: readonly Word[], at: number, reader: NameReader): number {
  const word = words[at];
  if (word === undefined || isParticle(word) || SAINTS.has(words[at - 1]?.plain ?? '')) return 0;
  let from = at;
  while (TITLE.test(words[from]?.text.toLowerCase() ?? '') && from - at < 3) from += 1;
  if (from > at) {
    const length = spanFrom(words, from);
    return length === 0 ? 0 : from - at + length;
  }
  const length = spanFrom(words, at);
  if (length === 0) return 0;
  const name = words.slice(at, at + length).filter((one) => !isParticle(one));
  const others = name.slice(1).filter((one) => !isInitial(one));
  const isFirstName = reader.isFirstName(word.plain);
  const isSure = isFirstName && !AMBIGUOUS_GIVEN_NAMES.has(word.plain);
  if (others.length === 0)
    return isSure && length === 1 && isAlone(word, words.length, reader) ? 1 : isSure && name.length > 1 ? length : 0;
  const hasFamily = others.some(
    (one) => reader.isFamily(one.plain) || RUSSIAN_FAMILY.test(one.text) || PATRONYMIC.test(one.plain),
  );
  const isSureFamily = others.some(
    (one) => (reader.isFamily(one.plain) && !AMBIGUOUS_FAMILY_NAMES.has(one.plain)) || RUSSIAN_FAMILY.test(one.text),
  );
  if (isSure || (isFirstName && hasFamily) || isInitial(word)) return !isInitial(word) || isSureFamily ? length : 0;
  if (isSureFamily && length <= 4 && !isFirstOfSentence(word, reader.text)) return length;
  if (length === 2 && name.some(isChineseFamily) && name.every((one) => PINYIN.test(one.plain))) return length;
  // Family name first: China, Korea, Vietnam, Hungary.
  if (reader.isFamily(word.plain) && others.some((one) => reader.isFirstName(one.plain))) return length;
  return length <= 4 && saysPerson(words.slice(at, at + length), reader) ? length : 0;
}

/** Words before the name of a saint: towns have such names. */
const SAINTS: ReadonlySet<string> = new Set(['san', 'santa', 'santo', 'são', 'saint', 'st', 'sainte', 'sankt']);

const CHINESE_FAMILIES: ReadonlySet<string> = new Set(
  'wang zhang liu chen yang zhao huang zhou wu xu zhu guo luo liang zheng xie tang feng deng peng zeng xiao tian dong pan yuan cai jiang'.split(
    ' ',
  ),
);
const isChineseFamily = ({ plain }: Word) => CHINESE_FAMILIES.has(plain);
const PINYIN =
  /^(?:(?:zh|ch|sh|[bpmfdtnlgkhjqxzcsrwy])?(?:iang|iong|uang|ang|eng|ing|ong|ian|iao|uai|uan|ai|an|ao|ei|en|er|ia|ie|in|iu|ou|ua|ue|ui|un|uo|[aeiou])){1,3}$/;

/** The number of words at an index that can belong to one name. */
function spanFrom(words: readonly Word[], from: number): number {
  let to = from;
  while (to < words.length && to - from < 5) {
    const word = words[to];
    if (word === undefined || (!isParticle(word) && !isInitial(word) && isNoName(word))) break;
    to += 1;
  }
  while (to > from && isParticle(words[to - 1] as Word)) to -= 1;
  return to - from;
}

/** Whether a given name stands alone in prose, not in code: not a call, a member access, a path or an identifier. */
function isAlone(word: Word, runWords: number, { text }: NameReader): boolean {
  if (runWords > 2) return false;
  const after = text.slice(word.end, word.end + 2);
  const before = text.slice(Math.max(0, word.start - 2), word.start);
  return (
    !/^(?:[(<[{=_/\\@:]|\.[\p{L}\p{N}])/u.test(after) &&
    !/(?:[<({[=_/\\@.`]|::)$/u.test(before) &&
    word.plain.length > 2
  );
}

function isFirstOfSentence(word: Word, text: string): boolean {
  return /(?:^|[.!?:\n])\s{0,4}$/.test(text.slice(Math.max(0, word.start - 6), word.start));
}

function saysPerson(words: readonly Word[], reader: NameReader): boolean {
  const first = words[0];
  const last = words.at(-1);
  if (
    first === undefined ||
    last === undefined ||
    words.some(({ text }) => text.length > 2 && text === text.toUpperCase())
  )
    return false;
  const name = reader.text.slice(first.start, last.end);
  const known = reader.cachedAnswers.get(name);
  if (known !== undefined) return known;
  if (reader.lookups >= NAME_LOOKUPS_MAX) return false;
  reader.lookups += 1;
  const from = Math.max(0, first.start - NAME_CONTEXT_CHARS);
  const context = reader.text.slice(from, last.end + NAME_CONTEXT_CHARS);
  const answer = reader.knowledge.saysPerson(context, name);
  reader.cachedAnswers.set(name, answer);
  return answer;
}

/** The words of an introduction that are a name: all capitalized words, or lower-case ones if the first is a known given name. */
function introduced(words: readonly Word[], isFirstName: (plain: string) => boolean): Place | undefined {
  let to = 0;
  for (const word of words) {
    const isLarge = /^\p{Lu}/u.test(word.text);
    const mayBe = isLarge
      ? !NO_NAMES.has(word.plain) || TITLE.test(word.plain)
      : to === 0
        ? isFirstName(word.plain)
        : isFirstName(words[0]?.plain ?? '') && (FAMILY_NAMES.has(word.plain) || PARTICLES.has(word.plain));
    if (!mayBe) break;
    to += 1;
  }
  const [first] = words;
  const last = words[to - 1];
  if (first === undefined || last === undefined || words.slice(0, to).every(({ plain }) => TITLE.test(plain)))
    return undefined;
  return { start: first.start, end: last.end };
}

const PARTICLES: ReadonlySet<string> = new Set(['von', 'van', 'de', 'da', 'del', 'bin', 'al', 'der']);
