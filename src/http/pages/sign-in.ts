import { html, type Page } from './html.ts';

/** The content of the sign-in page. */
export interface SignIn {
  return_to: string | undefined;
  /** The host of the OpenID Connect issuer; undefined if there is none. */
  issuer_host: string | undefined;
  /** Why the last attempt failed. */
  error?: string | undefined;
}

/** The sign-in page: a form for a management key, and a link to the issuer. */
export function signInPage({ return_to, issuer_host, error }: SignIn): Page {
  const issuer = issuer_host === undefined ? undefined : issuerLink(issuer_host, return_to);
  return {
    title: 'Sign in',
    body: html`<h1>Sign in to Model Gateway</h1>
${error === undefined ? undefined : html`<p class="error" role="alert">${error}</p>`}
${issuer}
<form method="post" action="sign-in">
<input type="hidden" name="return_to" value="${return_to ?? ''}">
<label for="management_key">Management key</label>
<input id="management_key" name="management_key" type="password" autocomplete="current-password" spellcheck="false" required autofocus>
<p class="note">The key that the first start printed, or another one of your organization.</p>
<div class="actions"><button class="primary">Sign in</button></div>
</form>`,
  };
}

function issuerLink(host: string, returnTo: string | undefined) {
  const query = returnTo === undefined ? '' : `?${new URLSearchParams({ return_to: returnTo })}`;
  return html`<div class="actions"><a class="button primary" href="sign-in/issuer${query}">Sign in with ${host}</a></div>
<p class="note">Or with a key:</p>`;
}

/** The page of a one-time link: its form uses the code up. */
export function linkPage(code: string, returnTo: string | undefined): Page {
  return {
    title: 'Sign in',
    body: html`<h1>Sign in to Model Gateway</h1>
<p>This link works once.</p>
<form method="post" action="sign-in">
<input type="hidden" name="code" value="${code}">
<input type="hidden" name="return_to" value="${returnTo ?? ''}">
<div class="actions"><button class="primary" autofocus>Sign in</button></div>
</form>`,
  };
}

/** The person who is signed in, for display. */
export interface SignedIn {
  user_name: string;
  user_email: string | null;
  form_token: string;
}

/** The name and email address of a person, without repetition. */
export function personText({ user_name, user_email }: SignedIn): string {
  return user_email === null || user_email === user_name ? user_name : `${user_name} (${user_email})`;
}

/** Replaces the sign-in page for a person who is signed in. */
export function signedInPage(session: SignedIn, hasConsole: boolean): Page {
  return {
    title: 'Signed in',
    body: html`<h1>You are signed in</h1>
<dl><div><dt>Signed in as</dt><dd><bdi>${personText(session)}</bdi></dd></div></dl>
${hasConsole ? html`<div class="actions"><a class="button primary" href="./">Open the console</a></div>` : undefined}
${signOutForm(session, html`<div class="actions"><button>Sign out</button></div>`)}`,
  };
}

/** A form that ends the session, around a button. */
export function signOutForm({ form_token }: SignedIn, button: ReturnType<typeof html>) {
  return html`<form method="post" action="sign-out">
<input type="hidden" name="form_token" value="${form_token}">
${button}
</form>`;
}
