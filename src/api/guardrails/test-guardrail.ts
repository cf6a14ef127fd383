import Type, { type Static, type TSchema } from 'typebox';
import { GatewayError } from '../../errors.ts';
import type { Analyzer } from '../../guardrails/entities/analyzer.ts';
import { checkGuardrail, guardrailSettings, UNRESTRICTED } from '../../guardrails/policy/guardrail.ts';
import type { Replay } from '../../guardrails/policy/replay.ts';
import { refusalError } from '../../guardrails/policy/verdict.ts';
import { requestTexts } from '../../guardrails/requests/request-texts.ts';
import type { Subject } from '../../guardrails/requests/screen.ts';
import type { Server } from '../../http/server.ts';
import { explain, ValidationError } from '../../http/validation.ts';
import type { Clock } from '../../inference/call.ts';
import type { Inference } from '../../inference/create-inference.ts';
import { type DryRun, dryRun } from '../../inference/guardrails/dry-run.ts';
import { clientField } from '../../inference/guardrails/input-guardrails.ts';
import type { Explanation } from '../../inference/plan/explain.ts';
import { inClientsWords } from '../../inference/prepare/client-fields.ts';
import type { Envelopes } from '../../inference/reasoning/envelope.ts';
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import { ChatCompletionBody } from '../../schemas/chat.ts';
import { CompletionBody } from '../../schemas/completions.ts';
import { errors } from '../../schemas/error.ts';
import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import { GuardrailTest, TestGuardrailBody } from '../../schemas/guardrail-test.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { MessagesBody } from '../../schemas/messages.ts';
import { ResponsesBody, type ResponsesRequestBody } from '../../schemas/responses.ts';
import type { GuardrailStore } from '../../storage/guardrails.ts';
import { type ChatBody, chatRequest } from '../chat/parse-request.ts';
import { type CompletionRequest, completionRequests } from '../completions/parse-request.ts';
import { messagesFieldNames } from '../messages/field-names.ts';
import { type MessagesRequestBody, messagesRequest } from '../messages/parse-request.ts';
import { responsesFieldNames } from '../responses/field-names.ts';
import { responsesRequest } from '../responses/parse-request.ts';
import { callOf } from '../shared/call-of.ts';
import { type ReplaySources, replayGuardrail } from './replay-guardrail.ts';
import { type NameSources, namesOf, requireGuardrail } from './require-guardrail.ts';

export interface TestGuardrailOptions extends NameSources {
  inference: Inference;
  guardrails: Pick<GuardrailStore, 'find'>;
  analyzer: Analyzer;
  timeoutMs(): number;
  phoneRegions?(): readonly string[];
  envelopes: Envelopes;
  clock: Clock;
  /** The logged requests. */
  contents: ReplaySources['contents'];
  workspaces: { find: ReplaySources['findWorkspace'] };
}

type Api = NonNullable<Static<typeof TestGuardrailBody>['api']>;

/** A guardrail without rules. */
const EMPTY: BoundGuardrail = { ...UNRESTRICTED, id: 'draft', scope: 'api-key' };

/** Filters and restrictions are tested separately. */
const NO_FILTERS = { content_filter_builtins: null, content_filters: null };

/** Checks and translates the body of a client API, and maps field names of the inner language to its own (not set: the same names). */
interface ApiReader {
  schema: TSchema;
  read(body: JsonObject): ChatRequest[];
  fieldNames?(body: JsonObject): (field: string) => string;
}

/** The readers by the API's name in a test. */
function readersOf({ envelopes }: TestGuardrailOptions, organizationId: string): Record<Api, ApiReader> {
  const envelope = envelopes(organizationId);
  return {
    chat: { schema: ChatCompletionBody, read: (body) => [chatRequest(body as unknown as ChatBody)] },
    responses: {
      schema: ResponsesBody,
      read: (body) => [responsesRequest(body as unknown as ResponsesRequestBody, { envelope })],
      fieldNames: (body) => responsesFieldNames(body as unknown as ResponsesRequestBody, 0),
    },
    messages: {
      schema: MessagesBody,
      read: (body) => [messagesRequest(body as unknown as MessagesRequestBody, { envelope, betas: [] })],
      fieldNames: (body) => messagesFieldNames(body as unknown as MessagesRequestBody),
    },
    completions: { schema: CompletionBody, read: (body) => completionRequests(body as unknown as CompletionRequest) },
  };
}

function requestsOf({ schema, read }: ApiReader, body: JsonObject): ChatRequest[] {
  const violations = explain(schema as unknown as Parameters<typeof explain>[0], body, 'request');
  if (violations.length > 0) throw new ValidationError('body', violations);
  return read(body);
}

/** Maps field names of the inner language to those of the request's client API. */
function fieldNamesOf(
  { fieldNames }: ApiReader,
  body: unknown,
  request: ChatRequest | undefined,
): (field: string) => string {
  if (request === undefined) return (field) => field;
  const named = fieldNames === undefined ? {} : { fieldName: fieldNames(body as JsonObject) };
  return (field) => clientField({ request, ...named }, field);
}

/** A finding, masked so that only a reader who knows the text recognizes it. */
function masked(text: string, start: number, end: number): string {
  const characters = [...text.slice(start, end)];
  if (characters.length < 4) return '•'.repeat(characters.length);
  return `${characters[0]}${'•'.repeat(Math.min(characters.length - 2, 30))}${characters.at(-1)}`;
}

function findingsOf(
  { matches: texts, filters }: DryRun<unknown>,
  nameOf: (field: string) => string,
): GuardrailTest['findings'] {
  const findings = texts.flatMap(({ field, text, findings }) =>
    findings.map(({ start, end, filter: index, pattern }) => {
      const { slug, pattern: custom, label, action } = filters[index]!;
      return {
        filter: slug ?? 'custom',
        pattern: custom ?? pattern ?? null,
        label,
        action,
        field: nameOf(field),
        start,
        end,
        excerpt: masked(text, start, end),
      };
    }),
  );
  return findings.slice(0, limits.findings_reported_max);
}

function routingOf({ plan, error }: Explanation): NonNullable<GuardrailTest['routing']> {
  const left = plan.candidates.filter(({ excluded }) => excluded === undefined);
  return {
    models: [...new Set(left.map(({ model }) => model.id))],
    endpoints: left.map(({ endpoint }) => endpoint.id),
    excluded: plan.candidates.flatMap(({ endpoint, excluded }) =>
      excluded?.reason.startsWith('a guardrail') ? [{ endpoint_id: endpoint.id, reason: excluded.reason }] : [],
    ),
    error: error === undefined ? null : error.message,
  };
}

function exactlyOne(body: TestGuardrailBody, ...names: (keyof TestGuardrailBody)[]): void {
  if (names.filter((name) => body[name] !== undefined).length !== 1) {
    throw new GatewayError(
      400,
      `${names.join(' or ')} is required, and not ${names.length === 2 ? 'both' : 'several'}`,
    );
  }
}

/** The result of a test on many requests. */
function replayedTest(replay: Replay): Static<typeof GuardrailTest> {
  const verdict = (['blocked', 'redacted', 'flagged'] as const).find((action) => replay[action] > 0) ?? 'passed';
  return {
    verdict,
    refusal: null,
    findings: [],
    findings_count: replay.filters.reduce((sum, { findings }) => sum + findings, 0),
    changes: [],
    pipeline: [],
    routing: null,
    replay,
  };
}

/** Serves `POST /guardrails/test`: what a guardrail, or a draft of one, would do. Nothing is sent, charged, stored or logged. */
export function testGuardrail(server: Server, options: TestGuardrailOptions): void {
  const { inference, guardrails, analyzer, timeoutMs, clock } = options;

  async function boundOf(
    { guardrail_id, guardrail }: TestGuardrailBody,
    organizationId: string,
  ): Promise<BoundGuardrail> {
    if (guardrail_id !== undefined) {
      const stored = await requireGuardrail({ organization_id: organizationId, id: guardrail_id }, guardrails.find);
      return { ...stored, scope: 'api-key' };
    }
    const { workspace_id: _, ...draft } = guardrail ?? {};
    try {
      await checkGuardrail(draft, nextTurn);
      return { ...EMPTY, ...guardrailSettings(draft, namesOf(options)) };
    } catch (error) {
      // The draft is a field of the body, and so are its fields.
      throw error instanceof GatewayError ? inClientsWords(error, { fieldName: (name) => `guardrail.${name}` }) : error;
    }
  }

  server.route({
    method: 'POST',
    url: '/guardrails/test',
    config: { access: 'management' },
    schema: {
      operationId: 'testGuardrail',
      tags: ['Guardrails'],
      summary: 'Tries a guardrail, or a draft of one, on a text, a request, or requests that a workspace keeps.',
      description: 'Nothing is sent, charged, stored or logged.',
      body: TestGuardrailBody,
      response: { 200: Type.Object({ data: GuardrailTest }), ...errors(400, 401, 403, 404, 413, 429, 500, 503) },
    },
    handler: async (request, reply) => {
      reply.header('cache-control', 'private, no-store');
      const { body } = request;
      exactlyOne(body, 'guardrail_id', 'guardrail');
      exactlyOne(body, 'text', 'request', 'replay');
      if (body.api !== undefined && body.request === undefined)
        throw new GatewayError(400, 'api is only valid with request');
      const { organization_id } = request.principal!;
      const bound = await boundOf(body, organization_id);
      const { text = '', api = 'chat', replay } = body;
      if (replay !== undefined) {
        const sources = { ...options, findWorkspace: options.workspaces.find };
        return { data: replayedTest(await replayGuardrail(bound, replay, organization_id, sources)) };
      }
      const reader = readersOf(options, organization_id)[api];
      const wanted = body.request === undefined ? [] : requestsOf(reader, body.request as JsonObject);
      const subject: Subject<unknown> =
        body.request === undefined
          ? (visit) => visit(text, { field: 'text', kind: 'text' })
          : (visit) => wanted.map((inner) => requestTexts(inner, { visit, keeps_signatures: false }));
      const result = await dryRun(subject, [bound], {
        analyzer,
        timeout_ms: timeoutMs(),
        phone_regions: options.phoneRegions?.(),
      });
      const [first] = wanted;
      const nameOf = fieldNamesOf(reader, body.request, first);
      const { refusal } = result;
      const unfiltered = [{ ...bound, ...NO_FILTERS }];
      const routed = first && { ...callOf(request, first, clock), wants_metadata: false };
      const explained =
        routed && (await inference.explain({ ...routed, principal: { ...routed.principal, guardrails: unfiltered } }));
      return {
        data: {
          verdict: result.verdict,
          refusal:
            refusal === undefined
              ? null
              : { status: 403, ...refusalError({ ...refusal, field: nameOf(refusal.field) }) },
          findings: findingsOf(result, nameOf),
          findings_count: result.matches.reduce((sum, { findings }) => sum + findings.length, 0),
          changes: [...result.changed].slice(0, limits.findings_reported_max).map(([{ field }, text]) => ({
            field: nameOf(field),
            text,
          })),
          pipeline: result.stages,
          routing: explained === undefined ? null : routingOf(explained),
        },
      };
    },
  });
}
