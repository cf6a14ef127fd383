import { lookupTable } from '../../schemas/lookup-table.ts';

/** The purpose of vectors. Each wire has its own words for it. */
export type Purpose = 'query' | 'document' | 'classification' | 'clustering' | 'similarity' | 'code_query';

const WORDS: Readonly<Record<string, Purpose>> = lookupTable({
  query: 'query',
  search_query: 'query',
  retrieval_query: 'query',
  document: 'document',
  passage: 'document',
  search_document: 'document',
  retrieval_document: 'document',
  retrieval_passage: 'document',
  classification: 'classification',
  clustering: 'clustering',
  separation: 'clustering',
  similarity: 'similarity',
  semantic_similarity: 'similarity',
  text_matching: 'similarity',
  code_query: 'code_query',
  code_retrieval_query: 'code_query',
});

/** The purpose that `input_type` names, in the words of any provider; undefined for an unknown word. */
export function purposeOf(inputType: string | undefined): Purpose | undefined {
  if (inputType === undefined) return undefined;
  const word = inputType.toLowerCase().replace(/[-.]/g, '_');
  return Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
}

/** The wire's word for a client's `input_type`: by meaning if the wire has one, else as sent. */
export function wordFor(words: Readonly<Partial<Record<Purpose, string>>>, inputType: string | undefined) {
  const purpose = purposeOf(inputType);
  return (purpose === undefined ? undefined : words[purpose]) ?? inputType;
}
