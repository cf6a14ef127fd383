/** What vectors are for, as the wires tell it in words of their own. */
export type Purpose = 'query' | 'document' | 'classification' | 'clustering' | 'similarity' | 'code_query';

const WORDS: Readonly<Record<string, Purpose>> = {
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
};

/** What a client means by `input_type`, whichever provider's word it uses; undefined: a word that is nobody's here. */
export function purposeOf(inputType: string | undefined): Purpose | undefined {
  if (inputType === undefined) return undefined;
  const word = inputType.toLowerCase().replace(/[-.]/g, '_');
  return Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
}

/** A wire's word for what a client asked: by meaning where the wire has one, else as the client said it. */
export function wordFor(words: Readonly<Partial<Record<Purpose, string>>>, inputType: string | undefined) {
  const purpose = purposeOf(inputType);
  return (purpose === undefined ? undefined : words[purpose]) ?? inputType;
}
