/** Hostile PDFs, as small as possible. */
import { deflateSync } from 'node:zlib';

type Part = string | Buffer;

/** A PDF of these objects, numbered from 1; the first is the catalog. */
export function pdfOf(objects: readonly Part[], trailer = ''): Buffer {
  const parts: Buffer[] = [Buffer.from('%PDF-1.7\n')];
  let length = parts[0]!.length;
  const offsets: number[] = [];
  const add = (part: Part) => {
    const bytes = typeof part === 'string' ? Buffer.from(part, 'latin1') : part;
    parts.push(bytes);
    length += bytes.length;
  };
  for (const [at, object] of objects.entries()) {
    offsets.push(length);
    add(`${at + 1} 0 obj\n`);
    add(object);
    add('\nendobj\n');
  }
  const xref = length;
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  add(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}`);
  add(`trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer.replace('XREF', String(xref))} >>\n`);
  add(`startxref\n${xref}\n%%EOF\n`);
  return Buffer.concat(parts);
}

function stream(content: Part, dictionary = ''): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content, 'latin1') : content;
  return Buffer.concat([
    Buffer.from(`<< /Length ${bytes.length} ${dictionary} >>\nstream\n`),
    bytes,
    Buffer.from('\nendstream'),
  ]);
}

const CATALOG = '<< /Type /Catalog /Pages 2 0 R >>';
const FONT = '<< /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>';
const page = (more = `/Resources ${FONT}`) =>
  `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R ${more} >>`;
const onePage = '<< /Type /Pages /Kids [3 0 R] /Count 1 >>';

/** One page with this text. */
export function plainPdf(text: string, catalog = CATALOG): Buffer {
  return pdfOf([catalog, onePage, page(), stream(`BT /F 12 Tf 10 100 Td (${text}) Tj ET`)]);
}

const packed = (content: Part) => stream(deflateSync(content, { level: 9 }), '/Filter /FlateDecode');
const repeated = (text: string, bytes: number) => Buffer.alloc(bytes, text);

/** Forms that each draw the next one twice. */
function doubling(levels: number): Buffer {
  const form = (n: number) =>
    stream(
      n === levels - 1 ? 'BT /F 12 Tf (x) Tj ET' : '/N Do /N Do',
      `/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << ${FONT.slice(3, -3)} /XObject << /N ${n + 6} 0 R >> >>`,
    );
  const forms = Array.from({ length: levels }, (_, n) => form(n));
  const draws = stream('/N Do /N Do');
  return pdfOf([CATALOG, onePage, page('/Resources << /XObject << /N 5 0 R >> >>'), draws, ...forms]);
}

/** PDFs that are made on demand, because some of them are large. */
export const hostile: Readonly<Record<string, () => Buffer>> = {
  'nothing at all': () => Buffer.alloc(0),
  'a mark and nothing else': () => Buffer.from('%PDF-1.7\n'),
  'a mark before noise': () => Buffer.concat([Buffer.from('%PDF-1.4\n'), Buffer.alloc(100_000, 0xa5)]),
  'a table of objects that follows itself': () =>
    pdfOf([CATALOG, '<< /Type /Pages /Kids [] /Count 1 >>'], '/Prev XREF'),
  'a tree of pages that holds itself': () => pdfOf([CATALOG, '<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 900 >>']),
  'a million pages that are one': () => pdfOf([CATALOG, '<< /Type /Pages /Kids [3 0 R] /Count 1000000 >>', page()]),
  'a million pages': () =>
    pdfOf([
      CATALOG,
      `<< /Type /Pages /Kids [${'3 0 R '.repeat(1_000_000)}] /Count 1000000 >>`,
      page(),
      stream('BT /F 12 Tf (x) Tj ET'),
    ]),
  'content of 300 MB in 300 KB': () => pdfOf([CATALOG, onePage, page(), packed(repeated(' ', 300_000_000))]),
  'content packed twice': () =>
    pdfOf([
      CATALOG,
      onePage,
      page(),
      stream(deflateSync(deflateSync(repeated(' ', 300_000_000))), '/Filter [/FlateDecode /FlateDecode]'),
    ]),
  'thirty million characters': () =>
    pdfOf([CATALOG, onePage, page(), packed(repeated('BT /F 1 Tf (aaaaaaaaaaaaaaaaaaaa) Tj ET ', 60_000_000))]),
  'lists in lists, a million deep': () => pdfOf([CATALOG, onePage, page(), stream('['.repeat(1_000_000))]),
  'dictionaries in dictionaries': () => pdfOf([CATALOG, onePage, page(), stream('/P <</P '.repeat(200_000))]),
  'an object that is a million lists': () =>
    pdfOf([CATALOG, onePage, page(`/Resources ${'['.repeat(500_000)}`), stream('')]),
  'forms that draw the next one twice': () => doubling(40),
  'a form that draws itself': () =>
    pdfOf([
      CATALOG,
      onePage,
      page('/Resources << /XObject << /N 5 0 R >> >>'),
      stream('/N Do'),
      stream('/N Do', '/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /N 5 0 R >> >>'),
    ]),
  'a font of two thousand million widths': () =>
    pdfOf([
      CATALOG,
      onePage,
      page(
        '/Resources << /Font << /F << /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [5 0 R] >> >> >>',
      ),
      stream('BT /F 12 Tf <0041> Tj ET'),
      '<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /W [0 2000000000 500] >>',
    ]),
  'an object that is a stream in itself': () =>
    pdfOf([CATALOG, '2 0 R', stream('1 0 2 0', '/Type /ObjStm /N 1 /First 4')]),
};
