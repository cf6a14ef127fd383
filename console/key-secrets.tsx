import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { home } from './address.ts';
import type { Key } from './api.gen.ts';
import { call } from './api.ts';
import { ago, time } from './format.ts';
import { settings } from './snippets.ts';
import { say } from './state.ts';
import { bind, Code, Confirm, Dialog, Field, FormDialog, Snippets, VerbAndName } from './ui.tsx';

const GRACES = [
  ['0', 'not at all: it stops now'],
  ['3600', '1 hour'],
  ['86400', '24 hours'],
  ['604800', '7 days'],
] as const;

/** A new secret, shown once. */
export function Secret({
  made,
  onClose,
  children,
}: {
  made: { name: string; secret: string };
  onClose(): void;
  children?: ComponentChildren;
}) {
  return (
    <Dialog title="Copy the key now" onClose={onClose} isWide>
      <p>
        This is the secret of{' '}
        <strong>
          <bdi>{made.name}</bdi>
        </strong>
        . It is shown only here and only now: the gateway stores its hash.
      </p>
      {children}
      <Code text={made.secret} label="Secret" />
      <h3>Ready settings</h3>
      <Snippets of={settings(home, made.secret)} label="Settings" />
      <div class="actions">
        <button type="button" class="primary" onClick={onClose}>
          I have stored it
        </button>
      </div>
    </Dialog>
  );
}

/** What happens to the older secrets: one may stay, the others end. */
function Outcome({ of, grace, keep }: { of: Key; grace: number; keep: string }) {
  const { label, previous_label: previous } = of;
  const [stays, ends] = keep === 'previous' ? [previous ?? label, label] : [label, previous];
  if (grace === 0) {
    return (
      <p>
        <code>{label}</code>
        {previous !== null && (
          <>
            {' '}
            and <code>{previous}</code>
          </>
        )}{' '}
        {previous === null ? 'stops' : 'stop'} working at once, on every node. Programs that use{' '}
        {previous === null ? 'it' : 'them'} are refused until they have the new secret.
      </p>
    );
  }
  const until = Date.now() + grace * 1_000;
  const end = new Date(of.expires_at === null ? until : Math.min(until, Date.parse(of.expires_at))).toISOString();
  return (
    <p>
      <code>{stays}</code> works until {time(end)}; what it spends counts against the same limits. Give the new secret
      to all programs before.
      {ends !== null && (
        <>
          {' '}
          <code>{ends}</code> stops working at once.
        </>
      )}
    </p>
  );
}

/** Replaces the secret of a key. */
function RotateKey({ of, onClose, onMade }: { of: Key; onClose(): void; onMade(of: Key, secret: string): void }) {
  const grace = useSignal('86400');
  const keep = useSignal('');
  const previous = of.previous_label;
  const needsChoice = previous !== null && grace.value !== '0';
  const rotate = async () => {
    const { data, key } = await call('rotateKey', {
      path: { hash: of.hash },
      body: {
        grace_seconds: Number(grace.value),
        ...(needsChoice ? { keep: keep.value === 'previous' ? 'previous' : 'current' } : {}),
      },
    });
    onMade(data, key);
  };
  return (
    <FormDialog
      title="Rotate the key"
      submit={<VerbAndName verb="Rotate" name={of.name} />}
      cancel="Cancel"
      isDanger={grace.value === '0'}
      run={rotate}
      onClose={onClose}
    >
      <p>
        <strong>
          <bdi>{of.name}</bdi>
        </strong>{' '}
        gets a new secret. Its limits, usage, guardrails and the keys made with it stay.
      </p>
      <Field label="How long the old secret works">
        <select {...bind(grace)}>
          {GRACES.map(([seconds, title]) => (
            <option key={seconds} value={seconds}>
              {title}
            </option>
          ))}
        </select>
      </Field>
      {needsChoice && (
        <Field label="Which old secret" hint="Two still work, and only one of them can go on">
          <select required {...bind(keep)}>
            <option value="">Choose …</option>
            <option value="current">{of.label}, the current one</option>
            <option value="previous">{previous}, the one before</option>
          </select>
        </Field>
      )}
      {(!needsChoice || keep.value !== '') && <Outcome of={of} grace={Number(grace.value)} keep={keep.value} />}
    </FormDialog>
  );
}

function EndPrevious({ of, onClose, onDone }: { of: Key; onClose(): void; onDone(): void }) {
  const run = async () => {
    await call('deletePreviousSecret', { path: { hash: of.hash } });
    say('The old secret has ended.');
    onDone();
  };
  return (
    <Confirm title="End the old secret now?" verb="End" name={of.previous_label ?? ''} run={run} onClose={onClose}>
      <p>
        Programs that still use <code>{of.previous_label}</code> are refused at once, on every node. The current secret,{' '}
        <code>{of.label}</code>, goes on. This cannot be undone.
      </p>
      <p>
        <LastUse of={of} />
      </p>
    </Confirm>
  );
}

/** Whether programs still use the old secret. */
function LastUse({ of }: { of: Key }) {
  const { previous_secret_last_used_at: used } = of;
  if (used === null) return <>No request has used it since the rotation.</>;
  return (
    <>
      A request last used it <time dateTime={used}>{`${ago(used)} (${time(used)})`}</time>.
    </>
  );
}

/** The secrets of a key: a button that rotates it, and the state of the last rotation. */
export function KeySecrets({ of, onChange }: { of: Key; onChange(): void }) {
  const open = useSignal<'rotate' | 'end' | undefined>(undefined);
  const made = useSignal<{ key: Key; secret: string } | undefined>(undefined);
  const close = () => {
    open.value = undefined;
  };
  const { previous_label: previous, previous_secret_expires_at: end, rotated_at: rotated } = of;
  return (
    <>
      <p class="secrets">
        <button
          type="button"
          class="small"
          onClick={() => {
            open.value = 'rotate';
          }}
        >
          Rotate
        </button>{' '}
        {previous !== null && end !== null ? (
          <>
            <span class="tag fair">two secrets</span> The old secret <code>{previous}</code> is valid until{' '}
            <time dateTime={end}>{time(end)}</time>. <LastUse of={of} />{' '}
            <button
              type="button"
              class="small danger"
              onClick={() => {
                open.value = 'end';
              }}
            >
              End it now
            </button>
          </>
        ) : (
          <span class="dim">
            {rotated === null ? 'The secret was never replaced.' : `The secret was replaced ${time(rotated)}.`}
          </span>
        )}
      </p>
      {open.value === 'rotate' && (
        <RotateKey
          of={of}
          onClose={close}
          onMade={(key, secret) => {
            close();
            made.value = { key, secret };
            onChange();
          }}
        />
      )}
      {open.value === 'end' && (
        <EndPrevious
          of={of}
          onClose={close}
          onDone={() => {
            close();
            onChange();
          }}
        />
      )}
      {made.value && (
        <Secret
          made={{ name: made.value.key.name, secret: made.value.secret }}
          onClose={() => {
            made.value = undefined;
          }}
        >
          <p>
            {made.value.key.previous_secret_expires_at === null ? (
              'No older secret works any more.'
            ) : (
              <>
                The old secret <code>{made.value.key.previous_label}</code> works until{' '}
                {time(made.value.key.previous_secret_expires_at)}.
              </>
            )}
          </p>
        </Secret>
      )}
    </>
  );
}
