/**
 * The golden transcripts of each wire, whose answers are written by hand from the providers' documentation, sent to
 * clients.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dialects } from '../../src/providers/dialects.ts';
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { converseMessage } from '../readings/bedrock-converse.ts';
import { responseHead } from '../wires/wire-server.ts';
import { paths, plainRequest } from './clients.ts';
import { answerSteps, fileOf, PRICING } from './recorded-answers.ts';
import type { GroupRun, ReplayExchange, ReplayGroup } from './run-group.ts';

interface Transcript {
  name: string;
  upstream_model: string;
  quirks: object;
  request: JsonObject;
  status: number;
  headers: Record<string, string>;
  bytes: Uint8Array;
}

const ON_VERTEX = / on Vertex AI$/;

/** The sections of a file by the words of their headings; the rest of a heading is the section's first line. */
function sectionsOf(text: string): Map<string, string> {
  const headings =
    /^(endpoint|inner request|upstream request|upstream answer|inner answer|inner chunks)(?: for)? ?(.*)/;
  const sections = new Map<string, string>();
  for (const section of text.split(/^=== /m).slice(1)) {
    const [, heading, rest] = headings.exec(section) ?? [];
    if (heading === undefined) continue;
    const content = section.slice(section.indexOf('\n') + 1);
    sections.set(heading, rest === '' ? content.trim() : `${rest}\n${content.trim()}`);
  }
  return sections;
}

/** `200 application/json; retry-after: 3`, or the same with `content-type: ` before the type, or headers on lines of their own. */
function answerOf(section: string): Pick<Transcript, 'status' | 'headers'> & { payload: string } {
  const [head = '', ...lines] = section.split('\n');
  const [, status = '', type = '', more = ''] = /^(\d+) (?:content-type: )?([^;]+)(.*)/.exec(head) ?? [];
  const blank = lines.indexOf('');
  const ownLines = blank >= 0 && lines.slice(0, blank).every((line) => /^[a-z-]+: /.test(line));
  const pairs = [...more.split('; ').filter((part) => part !== ''), ...(ownLines ? lines.slice(0, blank) : [])].map(
    (line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)],
  );
  const payload = (ownLines ? lines.slice(blank + 1) : lines).join('\n');
  return { status: Number(status), headers: { ...Object.fromEntries(pairs), 'content-type': type }, payload };
}

function bytesOf(type: string, payload: string): Uint8Array {
  if (!type.includes('stream')) return Buffer.from(payload);
  if (!type.includes('eventstream')) return Buffer.from(`${payload}\n\n`);
  const messages = payload.split('\n').map((line) => {
    const [, mark, name = '', json = ''] = /^(!?)(\w+) (.*)$/.exec(line)!;
    return converseMessage(name, JSON.parse(json), mark === '!' ? 'exception' : 'event');
  });
  return Buffer.concat(messages);
}

function transcriptsOf(wire: Wire): Transcript[] {
  const folder = new URL(`../transcripts/${wire}/`, import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  return names.sort().flatMap((name): Transcript[] => {
    const sections = sectionsOf(readFileSync(new URL(name, folder), 'utf8'));
    const answer = sections.get('upstream answer');
    const request = sections.get('inner request');
    if (answer === undefined || request === undefined) return [];
    const model = /^[^{\n]+/.exec(request)?.[0] ?? 'fast-1-2026-01';
    const { status, headers, payload } = answerOf(answer);
    const { quirks = {} } = JSON.parse(sections.get('endpoint') ?? '{}') as { quirks?: object };
    return [
      {
        name: name.replace(/\.txt$/, ''),
        upstream_model: model.replace(ON_VERTEX, ''),
        quirks: ON_VERTEX.test(model) ? { google_cloud: true } : quirks,
        request: JSON.parse(request.slice(request.indexOf('{'))) as JsonObject,
        status,
        headers,
        bytes: bytesOf(headers['content-type'] ?? '', payload),
      },
    ];
  });
}

function transcriptGroup(wire: Wire): (run: GroupRun) => ReplayGroup {
  return (run) => {
    const all = transcriptsOf(wire).map((transcript, i) => ({ ...transcript, model: `replay/${wire}-${i}` }));
    const models = Object.fromEntries(
      all.map(({ model, upstream_model, quirks }) => [
        model,
        {
          input_modalities: ['text', 'image', 'file', 'audio', 'video'],
          output_modalities: ['text', 'image'],
          context_length: 200_000,
          endpoints: [{ provider: wire, upstream_model, pricing: PRICING, max_completion_tokens: 64_000, quirks }],
        },
      ]),
    );
    const exchanges = all.flatMap(({ name, model, request, status, headers, bytes }): ReplayExchange[] => {
      const { 'content-type': type = '', ...more } = headers;
      const upstream = () => answerSteps(run, responseHead(status, type, more), bytes, type.includes('stream'));
      const { stream: _, stream_options: __, ...chat } = request;
      return [false, true].flatMap((stream) => {
        const form = stream ? 'stream' : 'whole';
        const of = (what: string, path: string, body: JsonObject): ReplayExchange => ({
          name: `${name}/${what} ${form}`,
          path,
          body: { ...body, model, stream },
          upstream,
        });
        return [
          of('chat', paths.chat, chat),
          ...(['responses', 'messages'] as const).map((api) => of(api, paths[api], plainRequest(api))),
        ];
      });
    });
    return { name: `transcripts/${wire}`, file: (url) => fileOf(url, models), exchanges };
  };
}

export const transcriptGroups: readonly ((run: GroupRun) => ReplayGroup)[] = [...dialects.keys()].map(transcriptGroup);
