import { type CountryCode, getExampleNumber, parsePhoneNumberFromString } from 'libphonenumber-js/max';
import examples from 'libphonenumber-js/mobile/examples';

/** A text with its labelled parts. */
export interface Sample {
  text: string;
  locale: string;
  labels: { slug: string; start: number; end: number }[];
}

/** The same numbers for the same seed (mulberry32). */
export function chance(seed: number) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (count: number) => Math.floor(next() * count);
  const one = <Item>(items: readonly Item[]): Item => items[below(items.length)]!;
  const digits = (count: number) => Array.from({ length: count }, () => below(10)).join('');
  return { below, one, digits };
}
type Chance = ReturnType<typeof chance>;

export const LOCALES = ['en-US', 'en-GB', 'de', 'fr', 'es', 'pt-BR', 'pl', 'ja', 'en-IN'] as const;
const REGIONS: Readonly<Record<string, CountryCode>> = {
  'en-US': 'US',
  'en-GB': 'GB',
  de: 'DE',
  fr: 'FR',
  es: 'ES',
  'pt-BR': 'BR',
  pl: 'PL',
  ja: 'JP',
  'en-IN': 'IN',
};

/** Sentences around a labelled part, in the language of each locale; `phone` is the word for it. */
const SENTENCES: Readonly<Record<string, { plain: readonly string[]; phone: readonly string[] }>> = {
  'en-US': {
    plain: [
      'Please write to {} before Monday.',
      'The value was {}, I think',
      '{"field": "{}", "n": 3}',
      '- {}\n- next',
    ],
    phone: ['Call me at {} tonight.', 'Phone: {}', 'cell {} (home)'],
  },
  'en-GB': {
    plain: ['I found {} in the letter.', '> {}', 'See "{}" below;'],
    phone: ['Tel: {}', 'My mobile is {}, ta.'],
  },
  de: { plain: ['Bitte prüfen Sie {} noch einmal.', 'Unter {} steht es.'], phone: ['Tel.: {}', 'Telefon {} (mobil)'] },
  fr: { plain: ['Merci de vérifier {} aujourd’hui.', 'C’est « {} ».'], phone: ['Tél. : {}', 'téléphone {}'] },
  es: { plain: ['Por favor, revise {} hoy.', '¿Es {} correcto?'], phone: ['Teléfono: {}', 'móvil {}'] },
  'pt-BR': { plain: ['Verifique {} por favor.', 'O valor é {}.'], phone: ['Telefone: {}', 'celular {}'] },
  pl: { plain: ['Proszę sprawdzić {} dzisiaj.', 'To jest {}.'], phone: ['Telefon: {}', 'tel. {}'] },
  ja: { plain: ['値は{}です。', '「{}」を確認してください。'], phone: ['電話：{}まで', '電話番号{}'] },
  'en-IN': { plain: ['Kindly check {} once.', 'Sir, {} is pending.'], phone: ['Mobile: {}', 'WhatsApp {}'] },
};

function filled(
  { one }: Chance,
  locale: string,
  slug: string,
  value: string,
  kind: 'plain' | 'phone' = 'plain',
): Sample {
  const sentence = one(SENTENCES[locale]![kind]);
  const start = sentence.indexOf('{}');
  const text = sentence.replace('{}', value);
  return { text, locale, labels: [{ slug, start, end: start + value.length }] };
}

const NAMES: Readonly<Record<string, readonly string[]>> = {
  'en-US': ['john.smith', 'mary_jones+news', 'jdoe1984', "sean.o'brien", 'x'],
  'en-GB': ['oliver.taylor', 'h.clarke-jones', 'amelia'],
  de: ['jürgen.müller', 'anna-lena.schröder', 'k.weiß'],
  fr: ['françois.dupont', 'chloé', 'jp.lefèvre'],
  es: ['maría.garcía', 'jose_lopez', 'núñez'],
  'pt-BR': ['joão.silva', 'ana.conceição', 'pedro99'],
  pl: ['łukasz.nowak', 'zażółć', 'k.wiśniewska'],
  ja: ['tanaka', 'yuki.sato', 'hana_123'],
  'en-IN': ['rahul.sharma', 'priya.k', 'a.r.rahman'],
};
const DOMAINS = [
  'example.com',
  'mail.example.co.uk',
  'bücher.de',
  'sub.domain.example.org',
  'xn--bcher-kva.ch',
  'example.museum',
  'my-company.io',
  'a.pl',
];

function email(random: Chance, locale: string): Sample {
  return filled(random, locale, 'email', `${random.one(NAMES[locale]!)}@${random.one(DOMAINS)}`);
}

function phone(random: Chance, locale: string): Sample {
  const region = REGIONS[locale]!;
  const example = getExampleNumber(region, examples)!;
  for (;;) {
    const national = example.nationalNumber.slice(0, -4) + random.digits(4);
    const number = parsePhoneNumberFromString(`+${example.countryCallingCode}${national}`);
    if (number?.isValid() !== true) continue;
    const kind = random.below(4);
    if (kind === 0) return filled(random, locale, 'phone', number.formatInternational());
    if (kind === 1) return filled(random, locale, 'phone', number.number);
    if (kind === 2) return filled(random, locale, 'phone', number.formatNational(), 'phone');
    return filled(random, locale, 'phone', number.formatNational());
  }
}

function ssn(random: Chance, locale: string): Sample {
  let area = 1 + random.below(898);
  if (area === 666) area = 665;
  const [group, serial] = [1 + random.below(99), 1 + random.below(9_999)];
  const parts = [String(area).padStart(3, '0'), String(group).padStart(2, '0'), String(serial).padStart(4, '0')];
  return filled(random, locale, 'ssn', parts.join(random.one(['-', '-', ' ', '\u2011', '\u00a0'])));
}

const CARDS = [
  ['4', 16],
  ['4', 16],
  ['51', 16],
  ['55', 16],
  ['2223', 16],
  ['34', 15],
  ['37', 15],
  ['6011', 16],
  ['65', 16],
  ['3530', 16],
  ['36', 14],
  ['62', 16],
  ['5018', 12],
] as const;

function luhnDigit(digits: string): string {
  let sum = 0;
  for (const [index, digit] of [...digits].reverse().entries()) {
    const doubled = Number(digit) * 2;
    sum += index % 2 === 0 ? (doubled > 9 ? doubled - 9 : doubled) : Number(digit);
  }
  return String((10 - (sum % 10)) % 10);
}

export function card(random: Chance): string {
  const [prefix, length] = random.one(CARDS);
  const digits = prefix + random.digits(length - prefix.length - 1);
  return digits + luhnDigit(digits);
}

function printedCard(random: Chance, locale: string): Sample {
  const number = card(random);
  const groups =
    number.length === 15 || number.length === 14 ? /^(\d{4})(\d{6})(\d+)$/ : /^(\d{4})(\d{4})(\d{4})(\d*)$/;
  const parts = (groups.exec(number) ?? []).slice(1).filter((part) => part !== '');
  return filled(random, locale, 'credit-card', parts.join(random.one(['', ' ', '-', '\u2009'])));
}

const hex = ({ below }: Chance, count: number) => Array.from({ length: count }, () => below(16).toString(16)).join('');

function ip(random: Chance, locale: string): Sample {
  const { below, one } = random;
  const four = Array.from({ length: 4 }, () => below(256)).join('.');
  const group = () => (1 + below(0xfffe)).toString(16);
  const made = [
    four,
    four,
    Array.from({ length: 8 }, group).join(':'),
    `2001:db8::${group()}`,
    `fe80::${group()}:${group()}%eth0`,
    `::ffff:${four}`,
    '::1',
  ];
  return filled(random, locale, 'ip-address', one(made));
}

/** Texts that look like a match and are none. */
function hardNegative(random: Chance, locale: string): Sample {
  const { below, one, digits } = random;
  const two = (value: number) => String(value).padStart(2, '0');
  const date = `20${two(below(30))}-${two(1 + below(12))}-${two(1 + below(28))}`;
  const uuid = `${hex(random, 8)}-${hex(random, 4)}-4${hex(random, 3)}-a${hex(random, 3)}-${hex(random, 12)}`;
  const group = () => hex(random, 2);
  const text = one([
    `on ${date} at ${two(below(24))}:${two(below(60))}:${two(below(60))}.${digits(3)}Z`,
    `${two(1 + below(28))}.${two(1 + below(12))}.20${two(below(30))} ${two(below(24))}:${two(below(60))}`,
    `${1 + below(12)}/${1 + below(28)}/20${two(below(30))}`,
    `timestamp 17${digits(8)} and 17${digits(11)}`,
    `order #${digits(10)} of ${below(100)},${digits(3)},${digits(3)}.00`,
    `invoice no. ${1 + below(9)}${digits(9)}`,
    `id: ${digits(16)}abc ${uuid}`,
    `commit ${hex(random, 40)}`,
    `sha256:${hex(random, 64)}`,
    `DE89 3704 0044 0532 0130 00`,
    `GB29 NWBK 6016 1331 9268 19`,
    `ES9121000418450200051332`,
    `version ${below(9)}.${below(20)}.${below(20)}.${below(99)}`,
    `v${below(9)}.${below(20)}.${below(20)}.${below(99)}`,
    `"lodash": "^4.17.${below(30)}", "@types/node": "24.${below(20)}.2"`,
    `lodash@4.17.${below(30)} and react@latest`,
    `git@github.com:acme/repo${below(99)}.git`,
    `user@localhost and root@db${below(9)}`,
    `@Override public void run${below(99)}()`,
    `std::vector<int> a${below(99)}; Foo::Bar; a::b::c`,
    `${two(below(24))}:${two(below(60))}:${two(below(60))} up ${below(99)} days`,
    `${Array.from({ length: 6 }, group).join(':')} is a MAC`,
    `x[::${1 + below(5)}] + y[1::${2 + below(5)}]`,
    `Chrome/1${digits(2)}.0.0.0 Safari/537.36`,
    `ISBN 978-3-16-1484${digits(2)}-${below(10)}`,
    `part 12-345-${digits(5)} rev ${digits(2)}`,
    `3.14159265358979${digits(6)} and 0.${digits(16)}`,
    `total $${digits(3)},${digits(3)}.${digits(2)}`,
    `rows 12 345 678 90 ${digits(2)}`,
    `port ${1_000 + below(60_000)}, pid ${below(99_999)}`,
    `icon@2x.png logo@3x.jpg`,
    `${digits(20)}${digits(20)}`,
    `000-12-${digits(4)} and 666-45-${digits(4)}`,
    `4111 1111 1111 1112`,
    `1.2.3.${below(200)}.5 and 300.1.${below(99)}.1`,
    `UPC 0 ${digits(5)} ${digits(5)} ${below(10)}`,
    `§ 1.2.3.${below(9)} and section 4.5.6.${below(9)}`,
    `tracking 1Z999AA1${digits(10)}`,
    `${digits(3)}-${digits(5)}-${digits(3)} or ${digits(2)}-${digits(7)}`,
    `${below(9)}e${below(9)}f::Ghi, ::before { color: #${hex(random, 6)} }`,
  ]);
  return { text, locale, labels: [] };
}

const KINDS = { email, phone, ssn, 'credit-card': printedCard, 'ip-address': ip } as const;
export type LabelledSlug = keyof typeof KINDS;
export const LABELLED: readonly LabelledSlug[] = ['email', 'phone', 'ssn', 'credit-card', 'ip-address'];

/** Labelled texts of all locales: `each` of every kind and locale, and as many texts in all without any. */
export function corpus(seed: number, each: number): Sample[] {
  const random = chance(seed);
  const samples: Sample[] = [];
  for (const locale of LOCALES) {
    for (const slug of LABELLED) {
      for (let count = 0; count < each; count += 1) {
        samples.push(KINDS[slug](random, locale), hardNegative(random, locale));
      }
    }
  }
  return samples;
}

export interface Score {
  labelled: number;
  reported: number;
  /** Exact matches. */
  right: number;
  /** Matches at places without a label. */
  wrong: string[];
  missed: string[];
}

/** How well findings agree with the labels, for each slug and locale (`slug locale`), and for each slug. */
export function score(
  samples: readonly Sample[],
  find: (text: string) => readonly { slug: string; start: number; end: number }[],
): Map<string, Score> {
  const scores = new Map<string, Score>();
  const of = (key: string) => {
    const known = scores.get(key) ?? { labelled: 0, reported: 0, right: 0, wrong: [], missed: [] };
    scores.set(key, known);
    return known;
  };
  for (const { text, locale, labels } of samples) {
    const findings = find(text);
    for (const slug of LABELLED) {
      const mine = labels.filter((label) => label.slug === slug);
      const matching = findings.filter((finding) => finding.slug === slug);
      for (const key of [slug, `${slug} ${locale}`]) {
        const sum = of(key);
        for (const { start, end } of mine) {
          sum.labelled += 1;
          if (matching.some((finding) => finding.start <= start && finding.end >= end)) sum.right += 1;
          else sum.missed.push(text);
        }
        for (const finding of matching) {
          sum.reported += 1;
          const isRight = mine.some(({ start, end }) => finding.start < end && finding.end > start);
          if (!isRight) sum.wrong.push(text);
        }
      }
    }
  }
  return scores;
}
