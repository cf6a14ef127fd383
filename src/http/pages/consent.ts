import { type Html, html, type Page } from './html.ts';
import { personText, type SignedIn, signOutForm } from './sign-in.ts';

/** The content of the page on which a person approves a key. */
export interface Consent {
  /** Null if the code is shown to the person. */
  callback: { host: string; origin: string } | null;
  key_label: string;
  workspace_name: string;
  session: SignedIn;
  /** Sent along with the form, and checked again. */
  fields: Readonly<Record<string, string>>;
}

/** A page that asks a person to approve or deny an application's request for a key. */
export function consentPage({ callback, key_label, workspace_name, session, fields }: Consent): Page {
  const applicant = callback?.host ?? 'An application';
  const hidden: Html[] = Object.entries({ ...fields, form_token: session.form_token }).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">
`,
  );
  return {
    title: 'Authorize',
    body: html`<h1><bdi>${applicant}</bdi> asks for an API key</h1>
<p>It can then send requests to models on your account, until the key is deleted.</p>
<dl>
<div><dt>Application</dt><dd><bdi>${callback?.host ?? 'unknown: you will be shown a code'}</bdi></dd></div>
<div><dt>Key name</dt><dd><bdi>${key_label}</bdi></dd></div>
<div><dt>Workspace</dt><dd><bdi>${workspace_name}</bdi></dd></div>
<div><dt>Signed in as</dt><dd><bdi>${personText(session)}</bdi></dd></div>
</dl>
<form method="post" action="auth">
${hidden}<div class="actions">
<button name="decision" value="deny">Deny</button>
<button class="primary" name="decision" value="approve">Approve</button>
</div>
</form>
<p class="note">${
      callback === null
        ? 'Approve only if you started this yourself.'
        : 'Approving takes you back to the application. Approve only if you started this yourself.'
    }</p>
${signOutForm(session, html`<p class="note">Not you? <button class="quiet">Sign out</button></p>`)}`,
    form_targets: callback === null ? [] : [callback.origin],
  };
}

/** Shows a code to a person, who passes it to the application. */
export function codePage(code: string): Page {
  return {
    title: 'Your code',
    body: html`<h1>Your code</h1>
<p>Paste it into the application that requested it. It works once, within ten minutes.</p>
<p><code>${code}</code></p>
<p class="note">Anyone who has this code and the application’s secret can get a key in your name. Do not share it.</p>`,
  };
}
