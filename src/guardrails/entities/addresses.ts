import type { Entity } from './analyzer.ts';

// Every repeat is bounded, and each pattern starts with a number or a word of a short list: a search takes a bounded number of
// steps for each character of the text.

/** A word of the name of a street or town. */
const NAME = String.raw`\p{Lu}[\p{L}\p{M}’'.-]{0,30}`;
const SMALL = String.raw`(?:de|del|della|dei|di|da|do|das|dos|du|des|d[’']|la|le|les|l[’']|las|los|el|y|e|van|von|der|den|am|an|im|zur|zum|of|the|upon|en|sur|sous|in)`;
const TOWN = String.raw`${NAME}(?:[ -](?:${SMALL}[ -]?){0,2}${NAME}){0,3}`;
const GAP = String.raw`[ \t]{0,2},?(?:[ \t]{1,2}|[ \t]{0,2}\r?\n[ \t]{0,4})`;
const NUMBER = String.raw`\d{1,5}(?:[ ]?[a-zA-Z](?!\p{L}))?(?:[-–/]\d{1,5}[a-zA-Z]?)?`;

const STATES =
  'A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY]|NSW|VIC|QLD|TAS|ACT|NT|Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|Florida|Georgia|Hawaii|Idaho|Illinois|Indiana|Iowa|Kansas|Kentucky|Louisiana|Maine|Maryland|Massachusetts|Michigan|Minnesota|Mississippi|Missouri|Montana|Nebraska|Nevada|New Hampshire|New Jersey|New Mexico|New York|North Carolina|North Dakota|Ohio|Oklahoma|Oregon|Pennsylvania|Rhode Island|South Carolina|South Dakota|Tennessee|Texas|Utah|Vermont|Virginia|Washington|West Virginia|Wisconsin|Wyoming';
const BRITISH = String.raw`(?:GIR 0AA|[A-PR-UWYZ][A-HK-Y]?\d[A-Z\d]?[ ]\d(?!GB|TB|HZ|PX)[ABD-HJLNP-UW-Z]{2})(?![\p{L}\p{N}])`;
const CANADIAN = String.raw`[A-CEGHJ-NPR-TVXY]\d[A-CEGHJ-NPR-TV-Z][ -]?\d[A-CEGHJ-NPR-TV-Z]\d(?![\p{L}\p{N}])`;
const AMERICAN = String.raw`(?:${STATES})(?:\.?,?[ \t]{1,2}|[ ]?\r?\n[ ]{0,4})\d{4,5}(?:-\d{4})?(?!\d)`;
/** The rest of an address after an English street: unit, town, state, postal code. */
const ENGLISH_END = String.raw`(?:,?[ ](?:Apt|Apartment|Suite|Ste|Unit|Floor|Flat|Room|Bldg|Building|#)\.?[ ]?#?[\p{L}\d-]{1,8})?(?:${GAP}${TOWN}){0,2}(?:${GAP}(?:${AMERICAN}|${BRITISH}|(?:ON|QC|BC|AB|MB|SK|NS|NB|NL|PE)[ ]{1,2}${CANADIAN}))?(?:${GAP}(?:USA|U\.S\.A\.|United States(?: of America)?|UK|United Kingdom|England|Scotland|Wales|Canada|Australia|Ireland|New Zealand))?`;
const SUFFIX =
  'Street|Avenue|Road|Boulevard|Lane|Drive|Court|Place|Square|Terrace|Highway|Parkway|Crescent|Mews|Close|Circle|Trail|Plaza|Gardens|Grove|Hill|Row|Walk|Way|Broadway|Alley|St|Ave|Rd|Blvd|Ln|Dr|Ct|Pl|Sq|Ter|Hwy|Pkwy|Cres|Cir';
const CONTINENTAL_END = String.raw`(?:${GAP}(?:[A-Z]{1,2}-)?(?:\d{4,5}(?:[ ]?[A-Z]{2}(?!\p{L})|-\d{3})?|\d{2}-\d{3})[ ]{1,2}${TOWN}(?:[ ]\([A-Z]{2}\))?)?(?:${GAP}(?:Deutschland|Germany|Österreich|Austria|Schweiz|Switzerland|France|España|Spain|Italia|Italy|Portugal|Brasil|Brazil|Nederland|Netherlands|Belgique|Belgium|México|Mexico))?`;
const STREET_NAME = String.raw`(?:${SMALL}[ ]?){0,3}${NAME}(?:[ -](?:${SMALL}[ ]?){0,2}${NAME}){0,3}`;

const PATTERNS: readonly RegExp[] = [
  // 221B Baker Street, London NW1 6XE
  String.raw`(?<![\p{L}\p{N}.,:/#-])${NUMBER}[ ]{1,2}(?:(?:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\.?[ ])?(?:(?:${NAME}|\d{1,3}(?:st|nd|rd|th))[ ]){1,4}(?:${SUFFIX})(?![\p{L}\p{N}]|[ ]View)\.?${ENGLISH_END}`,
  // 350 Fifth Avenue is above; 12 main street
  String.raw`(?<![\p{L}\p{N}.,:/#-])\d{1,5}[ ](?:[a-z]{3,20}[ ]|\d{1,3}(?:st|nd|rd|th)[ ]){1,2}(?:street|avenue|boulevard|road)(?!\p{L})(?:,[ ][a-z]{3,20}(?:,[ ][a-z]{2}[ ]\d{5})?)?`,
  // Springfield, IL 62704
  String.raw`(?<![\p{L}\p{N}])${TOWN},[ ]{1,2}(?:${STATES})[ ]{1,2}\d{5}(?:-\d{4})?(?!\d)`,
  String.raw`(?<![\p{L}\p{N}])(?:${TOWN},?[ ])?${BRITISH}`,
  // P.O. Box 1234, Postfach 12 34 56
  String.raw`(?<![\p{L}\p{N}])(?:P\.?[ ]?O\.?[ ]?Box|Post Office Box|Postfach|Apartado(?: de Correos)?|Casilla|Caixa Postal|Boîte Postale|Postbus)[ ]{1,2}(?:\d{1,6}|\d{2} \d{2}(?: \d{2})?)(?!\d)(?:${GAP}${TOWN},?[ ]{1,2}${AMERICAN})?${CONTINENTAL_END}`,
  // Hauptstraße 12, 10115 Berlin; Prinsengracht 263, 1016 GV Amsterdam
  String.raw`(?<![\p{L}\p{N}])(?:\p{Lu}[\p{L}.-]{1,40}(?:straße|strasse|str\.|weg|allee|gasse|damm|ufer|chaussee|steig|straat|laan|plein|gracht|kade|singel|dijk|gatan|vägen|gade|vej)|(?:\p{Lu}[\p{L}.-]{1,30}[ -]){1,3}(?:Straße|Strasse|Str\.|Weg|Platz|Allee|Gasse|Ring|Damm|Ufer|Chaussee)|(?:Am|An der|An den|Auf dem|Auf der|Im|In der|Unter den|Zum|Zur)[ ]\p{Lu}[\p{L}-]{2,30})[ ]\d{1,4}(?:[ ]?[a-zA-Z](?!\p{L}))?(?:[ ]?[-–/][ ]?\d{1,4})?(?![\p{L}\d%])${CONTINENTAL_END}`,
  String.raw`(?<![\p{L}\p{N}])\p{Lu}[\p{L}-]{1,40}(?:platz|ring|markt|hof|berg|tor)[ ]\d{1,4}[a-z]?,?\s{1,3}(?:[A-Z]{1,2}-)?\d{4,5}[ ]${TOWN}`,
  // 12 rue de la Paix, 75002 Paris
  String.raw`(?<![\p{L}\p{N}.,:/#-])\d{1,4}(?:[ ]?(?:bis|ter|quater))?,?[ ](?:[Rr]ue|[Aa]venue|[Aa]v\.|[Bb]oulevard|[Bb]d\.?|[Pp]lace|[Cc]hemin|[Aa]llée|[Ii]mpasse|[Qq]uai|[Cc]ours|[Rr]oute|[Pp]assage|[Ff]aubourg)[ ]${STREET_NAME}${CONTINENTAL_END}`,
  // C/ Mayor 5, 28013 Madrid; Via Roma 10; Rua Augusta, 1500; ul. Długa 7
  String.raw`(?<![\p{L}\p{N}])(?:C/|Calle|Avda\.?|Avenida|Av\.|Paseo|Pza\.|Plaza|Carrera|Camino|Ronda|Travesía|Jirón|Rua|R\.|Travessa|Praça|Alameda|Largo|Rodovia|Estrada|Via|Viale|Piazza|Piazzale|Corso|Vicolo|ul\.|ulica|al\.|aleja)[ ]{0,2}${STREET_NAME}[ ]{0,2},?[ ](?:n[º°.o][ ]?|núm\.?[ ]|#[ ]?|nº[ ]?)?\d{1,5}(?:[ ]?[a-zA-Z](?!\p{L}))?(?:/\d{1,4})?(?![\d%])(?:,[ ]\d{1,2}[ºª°][ ]?[A-Z]?)?(?:[ ][-–][ ]${TOWN})?(?:,[ ]${TOWN}[ ][-–][ ][A-Z]{2})?(?:${GAP}\d{5}-\d{3})?${CONTINENTAL_END}`,
  // ул. Ленина, д. 5, кв. 12
  String.raw`(?<![\p{L}\p{N}])(?:ул\.|улица|проспект|пр-т|пер\.|переулок|бульвар|наб\.|набережная|шоссе|вул\.|вулиця)[ ]{0,2}(?:\p{Lu}[\p{L}.-]{1,30}[ ]?){1,3},?[ ]{0,2}(?:д\.|дом)?[ ]?\d{1,4}[\p{L}]?(?:,?[ ](?:к\.|корп\.|стр\.)[ ]?\d{1,3})?(?:,?[ ](?:кв\.|квартира|оф\.)[ ]?\d{1,4})?`,
  String.raw`〒[ ]?\d{3}-\d{4}(?:[ \n]{0,2}[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\d－０-９-]{3,40})?`,
  String.raw`(?:東京都|北海道|京都府|大阪府|[\p{Script=Han}]{2,3}県)[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]{1,12}[市区町村][\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]{0,15}[\d０-９]{1,4}(?:[-－丁目番地号の]{1,2}[\d０-９]{1,4}){0,3}(?:番地|号)?`,
  String.raw`(?:[\p{Script=Han}]{2,6}省)?[\p{Script=Han}]{2,6}市[\p{Script=Han}]{1,6}[区县][\p{Script=Han}\d]{1,14}[路街道巷]\d{1,5}[号號](?:[\p{Script=Han}\d-]{1,12}[室楼樓])?`,
].map((source) => new RegExp(source, 'gu'));

/** Every address contains a digit. */
const HAS_NUMBER = /[0-9０-９]/;

/** Finds postal addresses: streets with a number, post office boxes, towns with a postal code. A town alone is not an address. */
export function findAddresses(text: string): Entity[] {
  if (!HAS_NUMBER.test(text)) return [];
  const addresses: Entity[] = [];
  for (const pattern of PATTERNS) {
    for (const { index, 0: match } of text.matchAll(pattern)) {
      const length = match.replace(/[\s,.]+$/, '').length;
      addresses.push({ start: index, end: index + length, slug: 'address' });
    }
  }
  return addresses;
}
