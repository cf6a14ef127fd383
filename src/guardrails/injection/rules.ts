import { folded } from '../entities/letters.ts';
import { ENGLISH_PHRASES } from './english.ts';
import { FOREIGN_PHRASES } from './languages.ts';
import { one, type PhraseDraft, upTo } from './phrase.ts';

/** A phrase, ready to be searched for in the line of a reading. */
export interface PhraseRule {
  pattern: string;
  expression: RegExp;
  needs: RegExp;
  isCommon: boolean;
  spelled?: RegExp | undefined;
}

/**
 * Every repeat in a phrase is of at most forty letters or nine words, and none stands in another without a word between: from
 * each word that a phrase may begin with, the steps of a search are bounded by its choices, whatever follows.
 */
function compiled({ pattern, needs, phrases, isCommon = false, spelled }: PhraseDraft): PhraseRule {
  const expression = new RegExp(`(?:${phrases.map(folded).join('|')})(?= |$)`, 'g');
  return { pattern, expression, needs: new RegExp(folded(needs)), isCommon, spelled };
}

let english: readonly PhraseRule[] | undefined;
let all: readonly PhraseRule[] | undefined;

/** The English phrases, and those of all languages if `isForeign`. Compiled on first use. */
export function phraseRules(isForeign: boolean): readonly PhraseRule[] {
  english ??= ENGLISH_PHRASES.map(compiled);
  if (!isForeign) return english;
  all ??= [...english, ...FOREIGN_PHRASES.map(compiled)];
  return all;
}

const VERBS =
  'ignore|disregard|forget|override|reveal|reveals|revealing|show|print|display|output|repeat|tell|share|leak|expose|disclose|discloses|divulge|recite|provide|bypass|circumvent|discuss|mention|follow|obey|change|modify|accept|break|violate|skip|drop|neglect|overlook|ignoring|disclosing|sharing|repeating|describe|quote|list|give|remove|disable|acknowledge|confirm|alter|abandon|deviate|enter|pretend|act|roleplay|simulate|do|be';
const WHO =
  'users?|someone|anyone|anybody|somebody|they|he|she|people|attackers?|adversar(?:y|ies)|hackers?|customers?|visitors?|person|callers?|text|content|document|documents|page|website|email|input|inputs|message|messages|prompts?|request|requests|it|payload|payloads|code|comments?|that';

/** Text before a phrase that forbids it or attributes it to others: `never reveal`, `if a user asks you to ignore`. */
export const NEGATION_BEFORE = new RegExp(
  `(?:${one('never|not|don t|dont|cannot|can t|cant|won t|wont|mustn t|shouldn t|must not|refuse to|decline to|refrain from|without|avoid|nor|neither|no need to|do not|unable to|instead of|rather than|refuses to|forbidden to|prohibited from')}${upTo(7, `ever|under|any|circumstances?|to|or|and|in|way|directly|simply|blindly|silently|just|allow|let|anyone|users?|be|tricked|into|the|model|${VERBS}`)}` +
    `|${one(WHO)}${upTo(2, 'who|that|which|may|might|could|will|can|also|would')}${one('asks?|asked|asking|tells?|telling|told|tries|try|tried|trying|attempts?|attempted|attempting|instructs?|instructed|instructing|wants?|wanted|requests?|requested|requesting|says?|saying|demands?|urges?|claims?|persuades?|convinces?|tricks?|makes?|causes?|gets?')}${upTo(6, 'to|you|me|it|them|us|the|model|assistant|bot|ai|agent|llm|chatbot|get|make|trick|convince|into|having|system|your|or')}` +
    `|${one('does|did|why|when|if|makes?|made|lets?|sometimes|may|might')}${upTo(1, 'the|my|our|an?|this|any')} (?:model|assistant|llm|bot|chatbot|claude|gpt|chatgpt|ai|agent)${upTo(2, 'sometimes|always|often|still|just|simply|to|not|will|would')}` +
    `|${one('attempts?|attempting|trying|tries|efforts?|asking|instructions|requests?|telling')} to${upTo(6, `get|make|trick|convince|force|cause|have|you|the|model|assistant|bot|ai|llm|to|into|it|or|${VERBS}`)}` +
    `|${one('detects?|detecting|prevent|prevents|preventing|block|blocks|blocking|catch|catches|flag|flags|mitigate|protect against|guard against|defend against|resist|reject|rejects|attacks?|phrases?|injections?|patterns?|strings?')}${upTo(6, `like|such|as|that|the|a|an|model|users?|attempts?|to|from|of|prompts?|prompt|injections?|attacks?|it|and|or|containing|which|phrases?|with|saying|e|g|s|llm|bot|${VERBS}`)})$`,
);

/** Text before a phrase, in the same sentence, in questions of developers about how something is done. */
export const HOW_TO_BEFORE = new RegExp(
  `${one('how|way|ways|possible|option|options|function|method|flag|parameter|setting|script|command|class|tests?|feature|endpoint|button|code|api|tool|hook|want to|need to|trying to|tried to|able to|allows?|allow|lets?|should|i can|can i|could i|we|i|which|where|why|when|if|whether|that|it|he|she|they|users|developers|admins|admin|does|did|is|was|are|using|used to|config|configuration|what happens')}(?= )`,
);
