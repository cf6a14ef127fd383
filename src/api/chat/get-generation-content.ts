import Type from 'typebox';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { GenerationContent, type LoggedContent } from '../../schemas/logged-content.ts';
import type { LoggedContents } from './logged-contents.ts';

function inputOf({ request, is_prompt }: LoggedContent): GenerationContent['input'] {
  const { messages, ...others } = request;
  const fields = Object.keys(others).length === 0 ? {} : { fields: others };
  const [only] = messages;
  if (is_prompt && messages.length === 1 && typeof only?.content === 'string') {
    return { prompt: only.content, ...fields };
  }
  return { messages: messages as GenerationContent['input']['messages'] & object, ...fields };
}

/** `GET /generation/content?id=`: the request and answer of a call, if the workspace logs them. */
export function getGenerationContent(server: Server, { contents }: { contents: Pick<LoggedContents, 'find'> }): void {
  server.route({
    method: 'GET',
    url: '/generation/content',
    config: { access: 'any', forMembers: true },
    schema: {
      operationId: 'getGenerationContent',
      tags: ['Chat'],
      summary: 'Returns the content of a finished request and of its answer, if its workspace keeps them.',
      description:
        'A management key reads everything of its organization; the session of a member what its own keys sent; an API key what keys of the same owner sent in its workspace. ' +
        'If nothing was kept, or this key may not read it, the answer is the same 404. `not_kept` is the reason if content could not be kept.',
      querystring: Type.Object({ id: Type.String({ minLength: 1, maxLength: 200 }) }),
      response: { 200: Type.Object({ data: GenerationContent }), ...errors(400, 401, 404, 500, 503) },
    },
    handler: async (request) => {
      const { id } = request.query;
      const { principal } = request;
      const content = principal && (await contents.find(id, principal));
      if (content === undefined) throw new GatewayError(404, `No content of generation ${id} is kept`);
      const { output, error, truncated = false, not_kept } = content;
      const data = { input: inputOf(content), output, error, truncated };
      return { data: not_kept === undefined ? data : { ...data, not_kept } };
    },
  });
}
