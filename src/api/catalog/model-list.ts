import Type, { type Static } from 'typebox';
import { RetrievedModel } from './retrieve-model.ts';

const nullableId = Type.Union([Type.String(), Type.Null()]);

/** The answer of lists of models: a page, in the form that the SDKs of the public service, OpenAI and Anthropic read. */
export const ModelList = Type.Object({
  data: Type.Array(RetrievedModel),
  total_count: Type.Integer({ description: 'The number of records in all.' }),
  links: Type.Object({
    next: Type.Union([Type.String(), Type.Null()], { description: 'Path of the next page; null on the last page.' }),
  }),
  object: Type.Literal('list'),
  has_more: Type.Boolean({ description: 'Whether there is another page.' }),
  first_id: nullableId,
  last_id: nullableId,
});
export type ModelList = Static<typeof ModelList>;
