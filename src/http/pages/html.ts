import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { lookupTable } from '../../schemas/lookup-table.ts';

/** Markup that is safe to send. Made only by `html`. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Html | readonly Html[] | undefined;

const ENTITIES: Readonly<Record<string, string>> = lookupTable({
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
});

function render(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (Array.isArray(part)) return part.map(render).join('');
  return String(part).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

/** Makes markup from a template, and escapes its values: the only place where text becomes HTML. Values belong between tags or in quoted attributes. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.map((text, index) => text + render(parts[index])).join(''));
}

/** The content of a page. */
export interface Page {
  title: string;
  body: Html;
  /** Origins besides this one that a form of the page may redirect to. */
  form_targets?: readonly string[];
}

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d4d7dd, #3d4148); --dim: light-dark(#5b6270, #a2a8b4); --accent: light-dark(#1f5fd0, #6ea0ff) }
* { box-sizing: border-box }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0; padding: 12vh 1.25rem 2rem; background: light-dark(#f5f6f8, #17191d) }
main { max-width: 27rem; margin: 0 auto; padding: 1.75rem; border: 1px solid var(--line); border-radius: .75rem; background: light-dark(#fff, #1f2227) }
h1 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .75rem; overflow-wrap: anywhere }
p { margin: .6rem 0 }
dl { margin: 1.1rem 0; border-top: 1px solid var(--line) }
dl > div { display: flex; gap: 1rem; padding: .5rem 0; border-bottom: 1px solid var(--line) }
dt { flex: 0 0 7.5rem; color: var(--dim) }
dd { margin: 0; min-width: 0; overflow-wrap: anywhere }
label { display: block; margin: 1rem 0 .3rem }
input { font: inherit; width: 100%; padding: .5rem .6rem; border: 1px solid var(--line); border-radius: .4rem; background: transparent; color: inherit }
.actions { display: flex; gap: .75rem; margin-top: 1.25rem }
button, .button { font: inherit; flex: 1; padding: .55rem 1rem; border: 1px solid var(--line); border-radius: .4rem; background: transparent; color: inherit; text-align: center; text-decoration: none; cursor: pointer }
.primary { background: light-dark(#1f5fd0, #2b6be0); border-color: transparent; color: #fff; font-weight: 600 }
.quiet { border: 0; padding: 0; flex: none; color: var(--accent); text-decoration: underline }
.error { padding: .6rem .8rem; border-left: 3px solid #d33; background: light-dark(#fdf0f0, #3a2224) }
.note { color: var(--dim); font-size: .9rem }
code { display: block; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: .4rem; overflow-wrap: anywhere; user-select: all }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
`;
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Sends a page that cannot be framed, scripted, cached or read by other origins. */
export function sendPage(reply: FastifyReply, status: number, { title, body, form_targets = [] }: Page): FastifyReply {
  // Chromium also applies `form-action` to the address that the answer to the form redirects to.
  const targets = ["'self'", ...form_targets].join(' ');
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} – Model Gateway</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
  return reply
    .code(status)
    .header('content-type', 'text/html; charset=utf-8')
    .header(
      'content-security-policy',
      `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action ${targets}; frame-ancestors 'none'; base-uri 'none'`,
    )
    .send(document.text);
}
