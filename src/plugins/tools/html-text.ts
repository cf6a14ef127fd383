import { limits } from '../../limits.ts';

/** Nested elements of a page. */
const PAGE_DEPTH_MAX = 1_000;
/** The processor time for one page. */
const PAGE_PARSE_MS_MAX = 1_000;

/** The visible text of a page. */
export interface PageText {
  title: string;
  text: string;
}

/** Elements whose content is not visible text. */
const UNSHOWN: ReadonlySet<string> = new Set([
  'script',
  'style',
  'noscript',
  'template',
  'svg',
  'iframe',
  'object',
  'canvas',
  'audio',
  'video',
  'select',
  'nav',
  'head',
  'dialog',
]);
/** Elements without an end tag. */
const VOID: ReadonlySet<string> = new Set([
  'area',
  'base',
  'br',
  'col',
  'embed',
  'hr',
  'img',
  'input',
  'link',
  'meta',
  'source',
  'track',
  'wbr',
]);
const BLOCKS: ReadonlySet<string> = new Set([
  'address',
  'article',
  'aside',
  'blockquote',
  'body',
  'dd',
  'details',
  'div',
  'dl',
  'dt',
  'fieldset',
  'figcaption',
  'figure',
  'footer',
  'form',
  'h1',
  'h2',
  'h3',
  'h4',
  'h5',
  'h6',
  'header',
  'li',
  'main',
  'ol',
  'p',
  'pre',
  'section',
  'summary',
  'table',
  'tr',
  'ul',
]);

/** Whether an element is hidden by its own attributes. */
function isHidden({ hidden, style, 'aria-hidden': aria }: Record<string, string>): boolean {
  return (
    hidden !== undefined ||
    aria === 'true' ||
    /(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d]))/i.test(
      style ?? '',
    )
  );
}

/** Builds lines of text: white space becomes one space, a block becomes a line. */
class Lines {
  readonly #lines: string[] = [];
  #line = '';
  /** Tracked separately: reading the end of a growing string would flatten it. */
  #isSpaced = true;
  #chars = 0;
  readonly #charsMax: number;

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  isFull(): boolean {
    return this.#chars >= this.#charsMax;
  }

  add(text: string, isExact: boolean): void {
    if (this.isFull()) return;
    if (isExact) {
      const [first = '', ...others] = text.split('\n');
      this.#append(first);
      for (const line of others) {
        this.end();
        this.#append(line);
      }
      return;
    }
    const plain = text.replace(/\s+/g, ' ');
    this.#append(this.#isSpaced ? plain.trimStart() : plain);
  }

  #append(text: string): void {
    if (text === '') return;
    this.#line += text;
    this.#isSpaced = text.endsWith(' ');
    this.#chars += text.length;
  }

  end(): void {
    const line = this.#line.trimEnd();
    // At most one empty line between two texts.
    if (line !== '' || this.#lines.at(-1) !== '') {
      this.#lines.push(line);
      this.#chars += 1;
    }
    this.#line = '';
    this.#isSpaced = true;
  }

  text(): string {
    return [...this.#lines, this.#line]
      .join('\n')
      .replace(/\n{3,}/g, '\n\n')
      .trim()
      .slice(0, this.#charsMax);
  }
}

/**
 * The text of a page, with headings, lists and links in Markdown. Yields to the event loop between pieces. Stops at
 * the requested length, and at elements that are nested too deeply, as in hostile pages.
 */
export async function htmlText(
  html: string,
  { base, chars_max }: { base: string; chars_max: number },
): Promise<PageText> {
  const { Parser } = await import('htmlparser2');
  const lines = new Lines(chars_max);
  let title = '';
  let inTitle = false;
  let exact = 0;
  /** The hidden element, and the number of open elements of its name. */
  let unshown: { name: string; depth: number } | undefined;
  const links: string[] = [];
  let depth = 0;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1;
        inTitle = name === 'title' && title === '';
        if (unshown !== undefined) {
          if (name === unshown.name) unshown.depth += 1;
          return;
        }
        if (!VOID.has(name) && (UNSHOWN.has(name) || isHidden(attributes))) {
          unshown = { name, depth: 1 };
          return;
        }
        if (BLOCKS.has(name) || name === 'br' || name === 'hr') lines.end();
        const level = /^h([1-6])$/.exec(name)?.[1];
        if (level !== undefined) lines.add(`${'#'.repeat(Number(level))} `, true);
        else if (name === 'li') lines.add('- ', true);
        else if (name === 'td' || name === 'th') lines.add(' | ', false);
        else if (name === 'pre') exact += 1;
        else if (name === 'a') {
          const address = linkOf(attributes['href'], base);
          links.push(address);
          if (address !== '') lines.add('[', false);
        }
      },
      ontext(text) {
        if (inTitle) {
          // Text after the bound is cut anyway, and hostile pages have a title without an end.
          if (title.length < limits.page_slice_chars) title += text;
        } else if (unshown === undefined) lines.add(text, exact > 0);
      },
      onclosetag(name) {
        depth -= 1;
        if (name === 'title') inTitle = false;
        if (unshown !== undefined) {
          if (name === unshown.name) unshown.depth -= 1;
          if (unshown.depth === 0) unshown = undefined;
          return;
        }
        if (name === 'a') {
          const address = links.pop();
          if (address) lines.add(`](${address})`, true);
        } else if (name === 'pre') exact = Math.max(0, exact - 1);
        if (BLOCKS.has(name)) lines.end();
      },
    },
    { decodeEntities: true },
  );
  let spentMs = 0;
  const goesOn = () => !lines.isFull() && depth <= PAGE_DEPTH_MAX && spentMs < PAGE_PARSE_MS_MAX;
  for (let at = 0; at < html.length && goesOn(); at += limits.page_slice_chars) {
    if (at > 0) await new Promise((resolve) => setImmediate(resolve));
    const begunMs = performance.now();
    parser.write(html.slice(at, at + limits.page_slice_chars));
    spentMs += performance.now() - begunMs;
  }
  parser.end();
  return { title: title.replace(/\s+/g, ' ').trim().slice(0, limits.web_title_chars_max), text: lines.text() };
}

/** The absolute URL of a link. Empty if it is of no use to a reader. */
function linkOf(href: string | undefined, base: string): string {
  if (href === undefined || href === '' || href.startsWith('#') || href.length > limits.web_url_chars_max) return '';
  const url = URL.parse(href, base);
  return url !== null && /^https?:$/.test(url.protocol) ? url.href : '';
}
