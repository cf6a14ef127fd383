import { base } from './address.ts';

/** The usage that the last chunk of an answer states. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  cost?: number;
  cost_details?: { upstream_inference_cost?: number | null };
}

/** Parts of an answer as they arrive. */
export interface AnswerParts {
  onText(text: string): void;
  onReasoning(text: string): void;
  onEnd(facts: { usage?: Usage; id?: string; provider?: string }): void;
}

interface Chunk {
  id?: string;
  provider?: string;
  choices?: { delta?: { content?: string | null; reasoning?: string | null } }[];
  usage?: Usage;
  error?: { message?: string };
}

/** Sends a chat request with an API key and reads its stream. Throws with the message of a refusal or of a failed stream. */
export async function streamAnswer(key: string, body: object, parts: AnswerParts, signal: AbortSignal): Promise<void> {
  const response = await fetch(`${base}api/v1/chat/completions`, {
    method: 'POST',
    signal,
    credentials: 'omit',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok || response.body === null) {
    const refused = (await response.json().catch(() => ({}))) as { error?: { message?: string } };
    throw new Error(refused.error?.message ?? `The gateway answered with status ${response.status}.`);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const facts: Parameters<AnswerParts['onEnd']>[0] = {};
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('data: ') || line === 'data: [DONE]') continue;
      const chunk = JSON.parse(line.slice(6)) as Chunk;
      if (chunk.error !== undefined) throw new Error(chunk.error.message ?? 'The answer broke off.');
      if (chunk.usage) facts.usage = chunk.usage;
      if (chunk.id !== undefined) facts.id = chunk.id;
      if (chunk.provider !== undefined) facts.provider = chunk.provider;
      const delta = chunk.choices?.[0]?.delta;
      if (delta?.reasoning) parts.onReasoning(delta.reasoning);
      if (delta?.content) parts.onText(delta.content);
    }
  }
  parts.onEnd(facts);
}
