import { expect, test } from 'vitest';
import { html } from './html.ts';

test('text is escaped between tags and in attributes, markup is kept, and undefined is empty', () => {
  const evil = `<script>alert("1")</script>&'`;
  const safe = '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;';
  expect(html`<p title="${evil}">${evil}</p>`.text).toBe(`<p title="${safe}">${safe}</p>`);
  expect(html`<ul>${['a', '<'].map((item) => html`<li>${item}</li>`)}</ul>${undefined}${5}`.text).toBe(
    '<ul><li>a</li><li>&lt;</li></ul>5',
  );
});

test('text that looks like markup is escaped unless `html` made it', () => {
  const forged = { text: '<b>' } as unknown as string;
  expect(html`${forged}`.text).not.toContain('<b>');
});
