/** The parts of a request besides the prompt: system prompt, parameters, tools and the schema of the answer. */

import { call } from '../api.ts';
import { bind, Field, useLoaded } from '../ui.tsx';
import {
  effort,
  hasSchema,
  images,
  isStrict,
  JSON_CHARS_MAX,
  longest,
  PROMPT_CHARS_MAX,
  schema,
  schemaFault,
  system,
  temperature,
  toolChoice,
  toolCount,
  tools,
  toolsFault,
  turns,
} from './draft.ts';
import { BoundedText, kept } from './fields.tsx';

const EXAMPLE_TOOLS = `[
  {
    "type": "function",
    "function": {
      "name": "get_weather",
      "description": "The weather of a city now.",
      "parameters": {
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"]
      }
    }
  }
]`;
const EXAMPLE_SCHEMA = `{
  "type": "object",
  "properties": { "summary": { "type": "string" }, "score": { "type": "number" } },
  "required": ["summary", "score"],
  "additionalProperties": false
}`;
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

function Example({ of, text }: { of: { value: string }; text: string }) {
  return of.value.trim() === '' ? (
    <button
      type="button"
      class="small"
      onClick={() => {
        of.value = text;
      }}
    >
      Insert an example
    </button>
  ) : null;
}

/** A state at the heading of a part, so that closed parts show whether they have something. */
const Mark = ({ text, isBad = false }: { text: string; isBad?: boolean }) =>
  text === '' ? null : <span class={`tag${isBad ? ' bad' : ''}`}>{text}</span>;

export function Settings() {
  const set = [
    system.value.trim() !== '' && 'system prompt',
    temperature.value !== '' && `temperature ${temperature.value}`,
    longest.value !== '' && `${longest.value} tokens`,
    effort.value !== '' && `reasoning ${effort.value}`,
  ].filter((one) => one !== false);
  return (
    <div class="settings">
      <details>
        <summary>
          System prompt and parameters <Mark text={set.join(', ')} />
        </summary>
        <BoundedText label="System prompt" max={PROMPT_CHARS_MAX} rows={3} {...kept(system)} />
        <div class="parameters">
          <Field label="Temperature">
            <input type="number" min="0" max="2" step="0.1" {...bind(temperature)} />
          </Field>
          <Field label="Most tokens" hint="Bounds the answer, and the cost">
            <input type="number" min="1" step="1" {...bind(longest)} />
          </Field>
          <Field label="Reasoning effort">
            <select {...bind(effort)}>
              <option value="">the model’s default</option>
              {EFFORTS.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </Field>
        </div>
      </details>
      <details>
        <summary>
          Tools{' '}
          <Mark
            text={toolsFault.value === undefined ? (toolCount.value === 0 ? '' : String(toolCount.value)) : 'not valid'}
            isBad={toolsFault.value !== undefined}
          />
        </summary>
        <BoundedText
          label="Tools, as JSON"
          hint="A list of functions. When a model calls one, you type its result and the model goes on."
          max={JSON_CHARS_MAX}
          rows={8}
          isCode
          fault={toolsFault.value}
          {...kept(tools)}
        />
        <div class="actions start-line">
          <Example of={tools} text={EXAMPLE_TOOLS} />
          {toolCount.value > 0 && (
            <Field label="Tool choice">
              <select {...bind(toolChoice)}>
                <option value="">the model decides</option>
                <option value="required">must call a tool</option>
                <option value="none">must not call a tool</option>
              </select>
            </Field>
          )}
        </div>
      </details>
      <details>
        <summary>
          JSON schema of the answer{' '}
          <Mark
            text={schemaFault.value === undefined ? (hasSchema.value ? 'set' : '') : 'not valid'}
            isBad={schemaFault.value !== undefined}
          />
        </summary>
        <BoundedText
          label="Schema, as JSON"
          hint="The model answers in JSON of this schema."
          max={JSON_CHARS_MAX}
          rows={7}
          isCode
          fault={schemaFault.value}
          {...kept(schema)}
        />
        <div class="actions start-line">
          <Example of={schema} text={EXAMPLE_SCHEMA} />
          <label class="strict">
            <input
              type="checkbox"
              checked={isStrict.value}
              onChange={(event) => {
                isStrict.value = event.currentTarget.checked;
              }}
            />
            Strict: nothing but this schema
          </label>
        </div>
      </details>
    </div>
  );
}

/** The parts of the request that no endpoint of a model declares to support. */
async function lacksOf(id: string, signal: AbortSignal): Promise<(need: string) => boolean> {
  const [author = '', ...rest] = id.split('/');
  const { data } = await call('listModelEndpoints', { path: { author, slug: rest.join('/') } }, signal);
  const parameters = new Set<string>(data.endpoints.flatMap(({ supported_parameters }) => supported_parameters));
  return (need) =>
    need === 'image'
      ? !data.architecture.input_modalities.includes('image')
      : parameters.size > 0 && !parameters.has(need);
}

const NEEDS: readonly (readonly [need: string, isNeeded: () => boolean, note: string])[] = [
  ['image', () => images.value.length > 0 || turns.value.some((turn) => turn.images.length > 0), 'accepts no images'],
  ['tools', () => toolCount.value > 0, 'calls no tools'],
  ['structured_outputs', () => hasSchema.value, 'follows no JSON schema'],
  ['reasoning', () => effort.value !== '' && effort.value !== 'none', 'has no reasoning effort'],
];

/** Shows what a chosen model does not support, by the catalog. */
export function ModelNotes({ of }: { of: string }) {
  // A name that is no model of the catalog, such as an alias, has no notes: the gateway decides.
  const lacks = useLoaded((abort) => lacksOf(of, abort).catch(() => undefined), of);
  const notes = NEEDS.filter(([need, isNeeded]) => isNeeded() && lacks.value?.(need)).map(([, , note]) => note);
  return notes.length === 0 ? null : (
    <p class="failure" role="status">
      <bdi>{of}</bdi> {notes.join(', ')}: the request will probably be refused.
    </p>
  );
}
