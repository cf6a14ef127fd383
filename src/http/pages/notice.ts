import { html, type Page } from './html.ts';

/** A page that says one thing. */
export function noticePage(title: string, text: string): Page {
  return {
    title,
    body: html`<h1>${title}</h1>
<p>${text}</p>
`,
  };
}
