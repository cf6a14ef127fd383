/** What a workspace keeps of a call: its prompt and its answer. */
import type { GenerationContent } from './api.gen.ts';
import { Code } from './ui.tsx';

/** The text of a message's content; parts without text as JSON. */
const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === null || content === undefined ? '' : JSON.stringify(content, null, 2);
  return content
    .map((part: { text?: unknown }) => (typeof part.text === 'string' ? part.text : JSON.stringify(part)))
    .join('\n');
};

/** A kept message. */
export type Message = { role: string; content?: unknown; tool_calls?: unknown; tool_call_id?: unknown };

/** The messages of a kept request. */
export const messagesOf = ({ input }: GenerationContent): Message[] =>
  (input.messages as Message[] | undefined) ?? [{ role: 'user', content: input.prompt ?? '' }];

/** Fields that a request of the same content has; numbers and secrets are not kept. */
const SENT_AGAIN = ['tools', 'tool_choice', 'response_format', 'reasoning_effort', 'verbosity', 'stop'];

/** The kept fields beside the messages that belong to the same request. */
export function fieldsOf({ input }: GenerationContent): Record<string, unknown> {
  const fields: Record<string, unknown> = input.fields ?? {};
  const kept = Object.entries(fields).filter(([name]) => SENT_AGAIN.includes(name));
  const effort = (fields['reasoning'] as { effort?: unknown } | undefined)?.effort;
  return { ...Object.fromEntries(kept), ...(typeof effort === 'string' && { reasoning_effort: effort }) };
}

function Part({ title, text }: { title: string; text: string }) {
  return (
    <div class="message">
      <h4>{title}</h4>
      <Code text={text} label={title} />
    </div>
  );
}

/** The prompt and the answer of a call. */
export function Content({ of }: { of: GenerationContent }) {
  const { output, error } = of;
  if (of.not_kept !== undefined) return <p>The content could not be kept: {of.not_kept.reason}</p>;
  return (
    <>
      {of.truncated && <p class="dim">Some of it was too long to be kept.</p>}
      {messagesOf(of).map((message, index) => (
        <Part
          key={index}
          title={message.role}
          text={[
            textOf(message.content),
            message.tool_calls === undefined ? '' : JSON.stringify(message.tool_calls, null, 2),
          ]
            .filter((text) => text !== '')
            .join('\n')}
        />
      ))}
      {output.reasoning !== null && <Part title="reasoning" text={output.reasoning} />}
      {output.completion !== null && <Part title="answer" text={output.completion} />}
      {output.refusal !== undefined && <Part title="refusal" text={output.refusal} />}
      {output.tool_calls?.map((tool, index) => (
        <Part key={index} title={`tool call: ${tool.function.name}`} text={tool.function.arguments} />
      ))}
      {error !== null && (
        <>
          <p class="failure">{error.message}</p>
          {error.previous_errors.length > 0 && (
            <Part title="earlier errors" text={JSON.stringify(error.previous_errors, null, 2)} />
          )}
        </>
      )}
    </>
  );
}
