import { html, type Page } from './html.ts';

/** A page with one message. */
export function noticePage(title: string, text: string): Page {
  return {
    title,
    body: html`<h1>${title}</h1>
<p>${text}</p>
`,
  };
}
