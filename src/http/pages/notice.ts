import { type Html, html, type Page } from './html.ts';

/** A page that says one thing, and perhaps what to do next. */
export function noticePage(title: string, text: string, next?: Html): Page {
  return {
    title,
    body: html`<h1>${title}</h1>
<p>${text}</p>
${next}`,
  };
}
