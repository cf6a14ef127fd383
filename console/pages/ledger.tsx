import { useSignal } from '@preact/signals';
import type { LedgerNodeStatus, LedgerStatus, LedgerVerification } from '../api.gen.ts';
import { call } from '../api.ts';
import { count, counted, time, usd } from '../format.ts';
import { logsOf, Sum } from '../links.tsx';
import { route, say, setQuery } from '../state.ts';
import { bind, Confirm, Empty, Field, FormDialog, Heading, Money, Show, Table, useAction, useLoaded } from '../ui.tsx';
import { Unseen } from './system.tsx';

type Estimated = LedgerStatus['generations'][number];

function Release({ node, onClose, onDone }: { node: LedgerNodeStatus; onClose(): void; onDone(): void }) {
  const run = async () => {
    const { data } = await call('releaseLedger', { body: { node_id: node.id } });
    say(`Released ${usd(data.released + data.booked, true)} in ${data.windows} windows.`);
    onDone();
  };
  return (
    <Confirm title="Release the money of this node?" verb="Release" name={usd(node.held)} run={run} onClose={onClose}>
      <p>
        <code>{node.id}</code> holds <Money usd={node.held} /> in {count(node.windows)} limit windows. If the node did
        spend it, limits are exceeded by that amount. This cannot be undone.
      </p>
    </Confirm>
  );
}

function Resolve({ of, onClose, onDone }: { of: Estimated; onClose(): void; onDone(): void }) {
  const cost = useSignal('');
  const reason = useSignal('');
  const correct = async () => {
    const { data } = await call('resolveLedger', {
      body: {
        generation_id: of.id,
        cost: Number(cost.value),
        ...(reason.value.trim() === '' ? {} : { reason: reason.value.trim() }),
      },
    });
    say(`${usd(data.before, true)} is now ${usd(data.cost, true)}.`);
    onDone();
  };
  return (
    <FormDialog title="Correct the cost of this call" submit="Correct the cost" run={correct} onClose={onClose}>
      <p>
        <code>{of.id}</code> of <bdi>{of.model}</bdi> was charged <Money usd={of.cost} />, of which{' '}
        <Money usd={of.estimated} /> is an estimate. Look the call up at the provider. The sums of its key, day and
        limits follow. This can be done once.
      </p>
      <Field label="Cost in USD" hint="What the provider billed; 0 if nothing">
        <input type="number" min="0" step="any" required autofocus {...bind(cost)} />
      </Field>
      <Field label="Reason" hint="Recorded in the audit">
        <input type="text" maxLength={500} autocomplete="off" {...bind(reason)} />
      </Field>
    </FormDialog>
  );
}

function Verification() {
  const result = useSignal<LedgerVerification | undefined>(undefined);
  const { start, failure, isRunning } = useAction(async () => {
    result.value = undefined;
    result.value = (await call('verifyLedger', {})).data;
  });
  const differences = result.value?.differences ?? [];
  return (
    <section class="card">
      <h2>Invariants</h2>
      <p>
        These must hold for every call, and are computed again from the single calls, over a connection that requests do
        not use:
      </p>
      <ul class="rules">
        <li>The windows of all limits have what their calls cost, and hold what nodes have reserved in them.</li>
        <li>The days of the activity, and the sum behind the credits, are the sums of their calls.</li>
        <li>The hours and days behind Usage are the sums of their calls, and of their corrections.</li>
      </ul>
      <p class="dim">It takes at most a minute.</p>
      <button type="button" class="primary" disabled={isRunning} onClick={start}>
        {isRunning ? 'Verifying …' : 'Verify the ledger'}
      </button>
      {failure}
      <div role="status">
        {result.value !== undefined && (
          <p>
            <span class={`tag ${differences.length === 0 ? 'good' : 'bad'}`}>
              {differences.length === 0 ? 'all sums agree' : `${count(differences.length)} differences`}
            </span>{' '}
            {counted(result.value.generations, 'call')} and {counted(result.value.windows, 'window')} in{' '}
            {result.value.seconds.toFixed(1)} s
          </p>
        )}
      </div>
      {differences.length > 0 && (
        <Table caption="Differences" head={['Sum', '>Settled', '>Stored']}>
          {differences.slice(0, 100).map(({ of, name, expected, actual }) => (
            <tr key={`${of} ${name}`}>
              <th scope="row">
                {of} <code>{name}</code>
              </th>
              <td class="right number">{count(expected)}</td>
              <td class="right number">{count(actual)}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

export default function Ledger() {
  const after = route.value.query.get('after') ?? undefined;
  const status = useLoaded((signal) => call('getLedgerStatus', { query: { after } }, signal), after);
  const releasing = useSignal<LedgerNodeStatus | undefined>(undefined);
  const resolving = useSignal<Estimated | undefined>(undefined);
  const done = () => {
    releasing.value = undefined;
    resolving.value = undefined;
    status.reload();
  };
  return (
    <>
      <Heading title="Ledger">
        <button type="button" onClick={status.reload}>
          Refresh
        </button>
      </Heading>
      <Show of={status}>
        {({ data }) => (
          <>
            <dl class="figures">
              <div>
                <dt>Held now</dt>
                <dd>
                  <Money usd={data.held} />
                </dd>
              </div>
              <div>
                <dt>Of this in doubt</dt>
                <dd>
                  <Money usd={data.in_doubt} />
                </dd>
              </div>
              <div>
                <dt>Booked for lost nodes</dt>
                <dd>
                  <Money usd={data.booked} />
                </dd>
              </div>
              <div>
                <dt>Charged by estimate</dt>
                <dd>
                  <a href="#estimated">
                    <Money usd={data.estimated} />
                  </a>
                </dd>
              </div>
            </dl>
            <section class="card">
              <h2>Money held by nodes</h2>
              <Table class="cards" caption="Money held by nodes" head={['Node', 'Seen', '>Held', '.Actions']}>
                {data.nodes.map((node) => (
                  <tr key={node.id}>
                    <th scope="row">
                      <code>{node.id}</code>
                    </th>
                    <td data-label="Seen">
                      <Unseen seconds={node.seconds_unseen} isLost={node.is_lost} />
                    </td>
                    <td data-label="Held" class="right">
                      <Money usd={node.held} />
                    </td>
                    <td class="buttons">
                      {node.is_lost && node.held > 0 && (
                        <button
                          type="button"
                          class="small danger"
                          aria-label={`Release the money of ${node.id}`}
                          onClick={() => {
                            releasing.value = node;
                          }}
                        >
                          Release
                        </button>
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
              {data.node_count > data.nodes.length && (
                <p class="dim">
                  The {count(data.nodes.length)} nodes last seen, of {count(data.node_count)}. All of them:{' '}
                  <code>model-gateway ledger status</code>
                </p>
              )}
            </section>
            <section class="card" id="estimated">
              <h2>
                Calls whose end is not known <span class="dim">{count(data.estimated_count)}</span>
              </h2>
              {data.generations.length === 0 ? (
                <Empty title={after === undefined ? 'The cost of every call is known' : 'No more calls'}>
                  <p>Calls appear here if a node was killed, or a provider never said how an answer ended.</p>
                </Empty>
              ) : (
                <Table
                  class="cards"
                  caption="Calls with an estimated cost"
                  head={['Call', '>Charged', '>Estimated', '.Actions']}
                >
                  {data.generations.map((one) => (
                    <tr key={one.id}>
                      <th scope="row">
                        <bdi>{one.model}</bdi>
                        <br />
                        <small>
                          <code>{one.id}</code> {time(one.created_at)}
                        </small>
                      </th>
                      <td data-label="Charged" class="right">
                        <Sum usd={one.cost} href={logsOf({ id: one.id })} />
                      </td>
                      <td data-label="Estimated" class="right">
                        <Money usd={one.estimated} />
                      </td>
                      <td class="buttons">
                        <button
                          type="button"
                          class="small"
                          aria-label={`Correct ${one.id}`}
                          onClick={() => {
                            resolving.value = one;
                          }}
                        >
                          Correct
                        </button>
                      </td>
                    </tr>
                  ))}
                </Table>
              )}
              <p class="dim">
                Each correction is kept with its reason and the amounts before and after:{' '}
                <a href="audit?type=generation" data-page>
                  Corrections so far
                </a>
              </p>
              <div class="pager">
                {after !== undefined && (
                  <button type="button" onClick={() => setQuery({ after: undefined })}>
                    From the beginning
                  </button>
                )}
                {data.next !== null && (
                  <button type="button" onClick={() => setQuery({ after: data.next ?? undefined })}>
                    Next
                  </button>
                )}
              </div>
            </section>
            <Verification />
          </>
        )}
      </Show>
      {releasing.value && (
        <Release
          node={releasing.value}
          onClose={() => {
            releasing.value = undefined;
          }}
          onDone={done}
        />
      )}
      {resolving.value && (
        <Resolve
          of={resolving.value}
          onClose={() => {
            resolving.value = undefined;
          }}
          onDone={done}
        />
      )}
    </>
  );
}
