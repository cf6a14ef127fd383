import {
  answerTo,
  type Callback,
  type Challenge,
  parseCallback,
  parseChallenge,
} from '../../accounts/authorization-code.ts';
import { GatewayError } from '../../errors.ts';
import { type Fields, formOf, queryOf } from '../../http/page-routes.ts';
import { codePage, consentPage } from '../../http/pages/consent.ts';
import { sendPage } from '../../http/pages/html.ts';
import { noticePage } from '../../http/pages/notice.ts';
import type { Server } from '../../http/server.ts';
import { limits } from '../../limits.ts';
import { isStorable } from '../../schemas/text.ts';
import type { Queries } from '../../storage/database.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { sessionStore } from '../../storage/sessions.ts';
import type { Change } from '../change.ts';
import { type CodeRequest, defaultLabel, issueCode } from './issue-code.ts';
import { type PageSession, type PageSessions, pageActor } from './page-sessions.ts';
import { goTo, signInAddress } from './sign-in-pages.ts';

/** The `state` of an authorization request. */
const STATE_CHARS_MAX = 1_024;

export interface ConsentPagesDependencies {
  sessions: PageSessions;
  queries: Queries;
  change: Change;
}

const PATH = '/auth';
const FIELDS = ['callback_url', 'code_challenge', 'code_challenge_method', 'key_label', 'state'] as const;
const HEADLESS_LABEL = 'Application without callback';

/** A checked request of an application for a key. */
interface ConsentRequest {
  callback: Callback | null;
  challenge: Challenge;
  key_label: string;
  /** Returned to the application unchanged. */
  state: string | undefined;
  /** The fields as received, for the form. */
  fields: Record<string, string>;
}

/** Reads an application's request. Nothing is sent to its callback unless the whole request is valid. */
function readConsentRequest(query: Fields): ConsentRequest {
  const url = query.get('callback_url');
  const callback = url === undefined ? null : parseCallback(url);
  const challenge = parseChallenge({
    code_challenge: query.get('code_challenge'),
    code_challenge_method: query.get('code_challenge_method'),
  });
  if (callback === null && challenge.code_challenge === null) {
    throw new GatewayError(400, 'Without a callback_url there must be a code_challenge.');
  }
  const keyLabel = query.get('key_label') ?? (callback === null ? HEADLESS_LABEL : defaultLabel(callback));
  if (keyLabel.length > limits.key_label_chars_max || !isStorable(keyLabel)) {
    throw new GatewayError(400, `key_label must be text of at most ${limits.key_label_chars_max} characters.`);
  }
  const state = query.get('state');
  if (state !== undefined && state.length > STATE_CHARS_MAX) {
    throw new GatewayError(400, `state must have at most ${STATE_CHARS_MAX} characters.`);
  }
  if (state !== undefined && callback && new URL(callback.href).searchParams.has('state')) {
    throw new GatewayError(400, 'state occurs twice: in the query of callback_url, and as a parameter.');
  }
  const fields = Object.fromEntries(
    FIELDS.flatMap((name) => {
      const value = query.get(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return { callback, challenge, key_label: keyLabel, state, fields };
}

async function defaultWorkspace(queries: Queries, { organization_id }: PageSession) {
  const workspace = await organizationStore(queries).findDefaultWorkspace(organization_id);
  if (!workspace) throw new Error('an organization without a default workspace');
  return workspace;
}

/** Serves `GET|POST /auth`: a signed-in person grants an application a key, or denies it. */
export function consentPages(server: Server, { sessions, queries, change }: ConsentPagesDependencies): void {
  server.route({
    method: 'GET',
    url: PATH,
    exposeHeadRoute: false,
    config: { access: 'open' },
    handler: async (request, reply) => {
      const { callback, key_label, fields } = readConsentRequest(queryOf(request));
      const session = await sessions.find(request, reply);
      if (!session) return goTo(reply, signInAddress(`${PATH}?${new URLSearchParams(fields)}`));
      const { name: workspaceName } = await defaultWorkspace(queries, session);
      return sendPage(reply, 200, consentPage({ callback, key_label, workspace_name: workspaceName, session, fields }));
    },
  });

  server.route({
    method: 'POST',
    url: PATH,
    config: { access: 'open' },
    handler: async (request, reply) => {
      const form = formOf(request);
      const { callback, challenge, key_label, state } = readConsentRequest(form);
      const session = await sessions.findForm(request, reply, form.get('form_token'));
      const back: Record<string, string> = state === undefined ? {} : { state };
      const decision = form.get('decision');
      if (decision === 'deny') {
        if (callback) return goTo(reply, answerTo(callback.href, { error: 'access_denied', ...back }));
        return sendPage(
          reply,
          200,
          noticePage('Denied', 'The application does not get a key. You can close this page.'),
        );
      }
      if (decision !== 'approve') throw new GatewayError(400, 'Approve or deny.');
      const { code } = await issueCode(change, pageActor(request, session), async ({ tx, at }) => {
        // Check the current state: the member may have been removed, or have signed out elsewhere, since the page was loaded. Lock the member
        // before the session, in the order of removals.
        const { organization_id, user_id } = session;
        const isMember = (await organizationStore(tx).lockMember({ organization_id, user_id })) !== undefined;
        if (!isMember || !(await sessionStore(tx).holdOpen({ id: session.id, at }))) {
          throw new GatewayError(403, 'You are no longer signed in. Go back and reload the page.');
        }
        return {
          callback,
          ...challenge,
          key_label,
          workspace_id: (await defaultWorkspace(tx, session)).id,
          user_id: session.user_id,
          asker_key_hash: session.key_hash,
          asker_secret_hash: session.secret_hash,
          made_by: 'session',
          limit_nano: null,
          limit_reset: null,
          key_expires_at: null,
        } satisfies CodeRequest;
      });
      if (callback) return goTo(reply, answerTo(callback.href, { code, ...back }));
      return sendPage(reply, 200, codePage(code));
    },
  });
}
