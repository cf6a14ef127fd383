/**
 * Makes the PDFs of `fixtures/`: `node test/pdf/make-fixtures.ts`. One by Chromium (its Skia/PDF writer, `chromium` on the path), the
 * others by PDFKit. They are committed, so that tests need neither.
 */
import { execFileSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import PDFDocument from 'pdfkit';

const at = (name: string) => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));
const SERIF = '/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf';
const MADE_AT = new Date(Date.UTC(2026, 0, 1));

function byChromium(): void {
  execFileSync('chromium', [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--no-pdf-header-footer',
    `--print-to-pdf=${at('report-chromium.pdf')}`,
    `file://${at('report.html')}`,
  ]);
}

async function byPdfkit(
  name: string,
  options: PDFKit.PDFDocumentOptions,
  draw: (pdf: PDFKit.PDFDocument) => void,
): Promise<void> {
  const pdf = new PDFDocument({
    size: 'A5',
    margin: 34,
    info: { CreationDate: MADE_AT, ModDate: MADE_AT },
    ...options,
  });
  const file = createWriteStream(at(name));
  pdf.pipe(file);
  draw(pdf);
  pdf.end();
  await finished(file);
}

function report(pdf: PDFKit.PDFDocument): void {
  pdf.font(SERIF).fontSize(18).text('Quarterly report').moveDown(0.5).fontSize(10);
  pdf.text('Efficient offices file flowcharts: a first affair of fluffy ligatures.').moveDown();
  pdf.text(
    'The left column tells of apples, and of nothing but apples, until it has no more lines left to tell of them. The right column tells of pears, and of nothing but pears, until it has no more lines left to tell of them.',
    { columns: 2, columnGap: 20, height: 90 },
  );
  const rows = [
    ['City', 'Sales'],
    ['Oslo', '1,204.50'],
    ['Zürich', '980.00'],
  ] as const;
  for (const [n, [city, sales]] of rows.entries()) {
    const y = 260 + n * 20;
    pdf.text(city, 40, y, { width: 120, lineBreak: false }).text(sales, 180, y, { width: 100, lineBreak: false });
  }
  pdf.addPage().text('Ελληνικά και русский текст: naïve café, 12 € ≤ 15 €.');
}

byChromium();
await byPdfkit('report-pdfkit.pdf', {}, report);
await byPdfkit('encrypted-pdfkit.pdf', { userPassword: 'open', ownerPassword: 'own', pdfVersion: '1.7' }, report);
await byPdfkit('picture-pdfkit.pdf', {}, (pdf) => void pdf.rect(40, 40, 200, 100).fill('#336699'));
