import { home } from './address.ts';
import type { Setup } from './api.gen.ts';
import { time } from './format.ts';
import { Code } from './ui.tsx';

/** The page where a person takes a first step. */
const STEP_PAGES: Record<string, [address: string, title: string]> = {
  provider: ['credentials?all=1', 'Provider credentials'],
  key: ['keys?new=1', 'New key'],
  first_call: ['playground', 'Playground'],
  limit: ['keys', 'Limits of keys'],
  console: ['workspaces', 'Workspaces and members'],
};

/** The first steps of an installation that are left, each with its command and its page. Nothing if all are done. */
export function Checklist({ steps }: { steps: Setup['steps'] }) {
  const left = steps.filter(({ is_done }) => !is_done).length;
  if (left === 0) return null;
  const next = steps.find(({ is_done }) => !is_done);
  return (
    <section class="card">
      <h2>
        First steps{' '}
        <span class="dim">
          {steps.length - left} of {steps.length} done
        </span>
      </h2>
      <ol class="steps">
        {steps.map(({ step, title, is_done, at, detail, command }) => (
          <li key={step} class={is_done ? 'done' : ''}>
            <details open={step === next?.step}>
              <summary>
                <span class="mark" aria-hidden="true">
                  {is_done ? '✓' : ''}
                </span>
                {title}
                <span class="hidden">{is_done ? ' (done)' : ' (to do)'}</span>
              </summary>
              <p>
                <bdi>{detail}</bdi> {at !== null && <span class="dim">{at.length > 10 ? time(at) : at}</span>}
              </p>
              <Code
                text={command.replaceAll(/https?:\/\/[^ ]+?(?=\/api\/v1)/g, home.replace(/\/$/, ''))}
                label={title}
              />
              {STEP_PAGES[step] && (
                <p>
                  In the console:{' '}
                  <a href={STEP_PAGES[step][0]} data-page>
                    {STEP_PAGES[step][1]}
                  </a>
                </p>
              )}
            </details>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** What is unsafe or incomplete in the configuration, with what to set. */
export function Warnings({ of }: { of: Setup['warnings'] }) {
  if (of.length === 0) return null;
  return (
    <section class="card">
      <h2>
        Warnings <span class="dim">{of.length}</span>
      </h2>
      <ul class="warnings">
        {of.map(({ message, command }) => (
          <li key={message}>
            <bdi>{message}</bdi>
            {command !== null && <Code text={command} label="What to set" />}
          </li>
        ))}
      </ul>
    </section>
  );
}
