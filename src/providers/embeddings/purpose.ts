import { lookupTable } from '../../schemas/lookup-table.ts';

/** The purpose of vectors. Each wire has its own words for it. */
export type Purpose = 'query' | 'document' | 'classification' | 'clustering' | 'similarity' | 'code_query';

/** The words of all providers for each purpose. */
const WORDS: Readonly<Record<Purpose, readonly string[]>> = {
  query: ['query', 'search_query', 'retrieval_query'],
  document: ['document', 'passage', 'search_document', 'retrieval_document', 'retrieval_passage'],
  classification: ['classification'],
  clustering: ['clustering', 'separation'],
  similarity: ['similarity', 'semantic_similarity', 'text_matching'],
  code_query: ['code_query', 'code_retrieval_query'],
};

const PURPOSES: Readonly<Record<string, Purpose>> = lookupTable(
  Object.fromEntries(
    Object.entries(WORDS).flatMap(([purpose, words]) => words.map((word) => [word, purpose as Purpose])),
  ),
);

/** The purpose that `input_type` names, in the words of any provider; undefined for an unknown word. */
export function purposeOf(inputType: string | undefined): Purpose | undefined {
  if (inputType === undefined) return undefined;
  const word = inputType.toLowerCase().replace(/[-.]/g, '_');
  return Object.hasOwn(PURPOSES, word) ? PURPOSES[word] : undefined;
}

/** The wire's word for a client's `input_type`: by meaning if the wire has one, else as sent. */
export function wordFor(words: Readonly<Partial<Record<Purpose, string>>>, inputType: string | undefined) {
  const purpose = purposeOf(inputType);
  return (purpose === undefined ? undefined : words[purpose]) ?? inputType;
}
