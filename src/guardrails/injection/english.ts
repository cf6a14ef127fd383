import { gap, one, type PhraseDraft, upTo } from './phrase.ts';

const FILL =
  'all|any|each|every|of|the|your|my|our|his|their|its|these|those|this|that|other|and|or|them|both|just|please|completely|totally|entirely|absolutely|fully|whatever|you|ve|were|was|been|have|a|an|to|from|about|now|immediately|simply|first|ever|single|openai|s|given';
const IGNORE =
  'ignor(?:e|es|ing)|disregard(?:ing)?|forget(?:ting)?|neglect|overlook|dismiss|discard|abandon|unlearn|overrule|nullify|invalidate|disobey|set aside|put aside|throw away|throw out|pay no (?:attention|heed) to|never mind|supersedes?';
const UNDO =
  'override|overrides|overriding|overwrite|void|cancel|erase|delete|clear|wipe|reset|revoke|bypass(?:ing)?|circumvent(?:ing)?|evade|sidestep|violate|break|drop|skip|suspend|remove|lift';
const PRIOR =
  'previous|previously|prior|above|earlier|preceding|foregoing|former|past|existing|initial|original|old|aforementioned|last';
const ORDERS = 'instructions?|prompts?|directives?|guidelines?|orders|programming|restrictions|constraints|guidance';
const HIDDEN =
  'system|initial|original|hidden|secret|internal|developer|pre|starting|first|full|entire|exact|complete|whole|underlying|confidential|private|current|core|base|configuration|setup|custom';
const SHOW =
  'reveal|revealing|show|print|display|output|repeat|tell|share|leak|expose|dump|disclose|divulge|recite|echo|return|provide|write|state|list|quote|paste|copy|give|say|read|translate|summarize|encode|spell|send|describe|type';
const INSTRUCTED =
  'you (?:were|are|have been|ve been|had been|got|received|have|was) (?:previously |just |originally |initially )?(?:given|told|taught|trained|instructed|programmed|provided|sent|received|been)';
const BAD =
  'evil[^ ]{0,12}|unrestricted|unfiltered|uncensored|amoral|unethical|immoral|malicious|jailbroken|lawless|rogue|unbound|unaligned|unhinged|unlimited';
const MODES =
  'developer|dev|god|debug|admin|administrator|sudo|root|maintenance|jailbreak|dan|unrestricted|unfiltered|uncensored|unsafe|evil|chaos|opposite|override|diagnostic|unlocked|freedom|no filter';
const FREE =
  'no|without|without any|free from|free of|not bound by|no longer bound by|unbound by|not limited by|no longer limited by|unrestricted by|not restricted by|not have|never have|not subject to|no longer subject to|not constrained by|unconstrained by';
const LIMITS =
  'restrictions?|limitations?|limits|rules|filters?|filtering|guidelines|ethics|morals|morality|constraints|censorship|boundaries|safeguards|guardrails|programming|(?:content |safety |usage |openai )polic(?:y|ies)';
const ENTER =
  'enter|entering|enable|activate|activating|switch(?:ing)? (?:in)?to|go into|turn on|start|initiate|simulate|unlock|engage|boot into|move into|be in|operate in|run in';
/** The end of a sentence or clause, or the start of the actual order. */
const SO =
  '(?= (?:\\.|and|then|now|where|in which|so|with no|without|you|your|to (?:answer|bypass|ignore|reveal|tell|say|get)|immediately|for this (?:conversation|chat|session))\\b| \\.? ?$)';

/** Filters and checks of machines and programs, which do not belong to the model. */
const NOT_OF_OTHERS =
  '(?! (?:of|in|on|for|from|at|when|while) (?!(?:the |this |your )?(?:model|ai|llm|assistant|chatgpt|openai|system|chat|conversation|session|response|me|my)))';

/** Phrases of injection attempts in English. The families have the names of the public service, the phrases are our own. */
export const ENGLISH_PHRASES: readonly PhraseDraft[] = [
  {
    pattern: 'ignore_previous_instructions',
    needs:
      'ignor|disregard|forget|neglect|overlook|dismiss|discard|abandon|unlearn|overrule|nullify|invalidate|disobey|aside|throw|attention|heed|never mind|supersede',
    phrases: [
      `${one(IGNORE)}${upTo(6, FILL)}${one(PRIOR)}${gap(2)}${one(`${ORDERS}|rules|policies|protocols|training`)}`,
      `${one(IGNORE)}${upTo(6, FILL)}(?: [^ .]{1,40}){0,1}${one(`${ORDERS}|rules`)}${upTo(2, 'that|which|and|text|messages?|content')}${one(`${PRIOR}|before|so far|up to now|until now|you (?:received|got|follow)|${INSTRUCTED}`)}`,
      `${one(IGNORE)}${upTo(3, FILL)}${one('everything|anything|all')}${gap(3)}${one(`above(?! the| line| \\d)|${INSTRUCTED}|before this(?: point)?|prior to this|you know|you ve learned|you learned|until now|up to now|up to this point`)}`,
      `${one(IGNORE)}${upTo(3, 'all|any|of|everything|about|the')}${one('your')}(?: (?!ego|own)[^ .]{1,40}){0,3}${one(`${ORDERS}|rules|polic(?:y|ies)|training|safety|ethics|moral[^ ]{0,5}|alignment|protocols?|limitations|filters|conditioning`)}`,
      `${one(IGNORE)}${upTo(4, `${FILL}|${PRIOR}`)}${one('system|developer|safety')}${one(`${ORDERS}|messages?|rules|protocols|polic(?:y|ies)`)}`,
      `${one('ignore|disregard|forget')} all${upTo(2, 'of|the|your|these|those|other')}${one('instructions|directives|guidelines|prompts|orders|commands|safety[^ ]{0,1}')}`,
      `${one('ignore|disregard|forget')}${upTo(3, FILL)}${one('(?:previous|prior|above|earlier|preceding)')}${upTo(1, 'system|user')}${one('commands|directions|context and|conversation and|text and|messages and|content and|input and')}`,
      `${one('forget|disregard|ignore')} (?:that )?(?:who you (?:are|were)|you (?:are|re|were) (?:an? )?(?:ai|assistant|chatgpt|claude|gpt|gemini|language model|chatbot|large language)|being an? (?:ai|assistant|chatbot|language model))`,
      `${one('ignore|disregard|forget')}${upTo(2, 'all|everything|of')} the above(?= \\.| and| instead| then|$| $| but)`,
      `${one('ignore|disregard|forget')}${gap(2)}${one('what')}${one(`${INSTRUCTED}|i said before|(?:the )?(?:system|developer|openai|anthropic) (?:said|told|prompt)`)}`,
    ],
  },
  {
    pattern: 'override_instructions',
    needs:
      'overrid|overwrite|void|cancel|erase|delete|clear|wipe|reset|revoke|bypass|circumvent|evade|sidestep|violate|break|drop|skip|suspend|remove|lift',
    phrases: [
      `${one(UNDO)}${upTo(4, FILL)}${one(`${PRIOR}|system|developer|current|default`)}${upTo(2, 'and|system|or|safety|security|user')}${one('instructions?|directives?|guidelines|programming')}(?! (?:files?|page|manual|section|set|list|tab|step|table|field|column|document|pdf))`,
      `${one(UNDO)}${upTo(4, 'all|any|of|the|these|those|my|and|or')}${one('your')}${gap(2)}${one('instructions?|directives?|guidelines|programming|rules|restrictions|system prompt|training|constraints|limitations|prompt')}`,
      `${one('override|bypass|circumvent|violate')}${upTo(3, FILL)}${one(`${PRIOR}|all`)}${upTo(2, FILL)}${one('instructions|rules|prompts?|directives|guidelines')}`,
      `${one('override|overwrite|bypass|circumvent')}${upTo(3, FILL)}${one('system|developer|safety')}${one('prompts?|messages?|instructions|rules')}${SO}`,
    ],
    isCommon: true,
  },
  {
    pattern: 'do_not_follow_instructions',
    needs: 'follow|obey|listen|adhere|comply|respect|abide',
    phrases: [
      `${one('do not|don t|dont|never|stop|cease|no longer|quit|you (?:must|should|need) not|refuse to|not (?:have|need) to')}${one('follow(?:ing)?|obey(?:ing)?|listen(?:ing)? to|adher(?:e|ing) to|comply(?:ing)? with|respect(?:ing)?|abid(?:e|ing) by')}${upTo(3, FILL)}${one(`${PRIOR}|system|your`)}${upTo(2, `and|or|system|safety|content|developer|${PRIOR}`)}${one(`${ORDERS}|rules|polic(?:y|ies)|protocols`)}`,
      `${one('do not|don t|dont|stop|no longer|never|must not|should not|need not')}${one('follow(?:ing)?|obey(?:ing)?|listen(?:ing)? to')}${upTo(2, FILL)}${one('instructions|rules|guidelines|directives')}${upTo(1, 'that|which')} (?:openai|anthropic|google|your (?:developers?|creators?|makers?)|they|the developers?) (?:gave|told|set|imposed|taught)`,
      `${one('do not|don t|dont|stop|no longer|never')}${one('follow(?:ing)?|obey(?:ing)?|listen(?:ing)? to')}${upTo(3, FILL)}${one('instructions|rules|guidelines|directives')} (?:above|before this|you were given|given (?:above|before|earlier|previously)|${INSTRUCTED})`,
    ],
  },
  {
    pattern: 'new_instructions',
    needs: 'new|instructions|prompt',
    phrases: [
      `${one('here (?:are|is|s|come)|these are|this is|follow|obey|receive|you have|you have been given|adopt')}${upTo(2, 'now|only|just|the|and|follow|some')}${one('your|these|my')} (?:new|updated|real|actual|true)${upTo(2, 'system|set|of|secret|primary')}${one('instructions?|directives?|orders|rules|prompt')}`,
      `${one('your')} (?:new|updated|real|actual|true|only)${upTo(2, 'and|only|system|primary|main|sole')}${one('instructions?|directives?|orders|system prompt|prompt')}${upTo(1, 'now|from now on')}${one('is|are|follow[^ ]{0,3}|as follows')}`,
      `${one('new (?:system )?(?:prompt|instructions?|directives?|orders)')}${one('override|overrides|supersede|supersedes|replace|replaces|cancel')}`,
    ],
  },
  {
    pattern: 'reveal_prompt',
    needs:
      'reveal|show|print|display|output|repeat|tell|share|leak|expose|dump|disclose|divulge|recite|echo|return|provide|write|state|list|quote|paste|copy|give|say|read|translate|summarize|encode|spell|send|describe|type',
    phrases: [
      `${one(SHOW)}${upTo(4, 'me|us|out|back|all|of|to|the|verbatim|exactly|now|again|please|word|for|it|contents?|full|text|entire|exact|complete|just|about|first')}${one('your')}${upTo(3, `${HIDDEN}|and|or|own`)}${one('system ?prompts?|prompts?|system instructions?|system messages?|initial (?:instructions?|messages?)|(?:hidden|secret|internal|original|confidential|initial|system|core|developer|first|current|exact|full|complete) (?:instructions?|rules|directives?|guidelines?|configuration|programming|messages?|prompts?)|directives|pre ?prompt|preamble|context window')}`,
      `${one('reveal|revealing|disclose|leak|divulge|expose|recite|show me|tell me|give me|print|output|repeat|dump|display|encode')}${upTo(4, 'me|us|all|of|verbatim|exactly|now|the|contents?|full|entire|exact|complete|your')}${one('your|these')} (?:instructions|rules and (?:guidelines|instructions)|guidelines)(?! (?:for|on|to|how|about|regarding))`,
      `${one('reveal|revealing|disclose|leak|divulge|expose|recite|exfiltrate')}${upTo(4, `me|us|all|of|verbatim|exactly|the|contents?|your|its|${HIDDEN}`)}${one('system ?prompts?|system instructions?|system messages?|(?:initial|hidden|secret|original|developer) (?:prompts?|instructions?|messages?)')}`,
    ],
  },
  {
    pattern: 'show_prompt',
    needs: 'prompt|instructions|message',
    phrases: [
      `${one('show|print|display|output|repeat|tell|dump|echo|give|write|type|paste|copy|return|share|provide')}${upTo(5, `me|us|all|out|back|of|verbatim|exactly|now|word|for|contents?|text|${HIDDEN}`)} (?:the|this)${upTo(2, HIDDEN)}${one('system ?prompts?|system instructions|system messages?|(?:initial|hidden|secret|original|developer) (?:prompts?|instructions?|messages?)')}(?: (?:you (?:were|are|have|got|received)|verbatim|above|word for word|exactly|in full|in a code block|in full text|now|please|and (?:all|your|any)|without|used to)|(?= \\.)| $)`,
    ],
    isCommon: true,
  },
  {
    pattern: 'reveal_prompt',
    needs: 'prompt|instructions|guidelines',
    phrases: [
      `${one(SHOW)}${upTo(3, 'me|us|all|of|exactly|verbatim')} the${upTo(2, HIDDEN)}${one('prompts?|instructions?|messages?')}${upTo(1, 'that|which')} you (?:were|have|received|got|are following|follow|started)`,
      `${one('full|entire|exact|complete|whole|verbatim|word for word')} (?:texts?|contents?|copy|version|wording) of (?:your|the)${upTo(2, HIDDEN)}${one('(?<= your [^.]{0,40})(?:prompts?|instructions|guidelines)|system ?prompts?|system messages?')}`,
      `${one('here is|here are|here s|these are')} my${upTo(2, HIDDEN)}${one('system ?prompts?|initial prompt|hidden instructions|secret instructions|system instructions')}`,
    ],
  },
  {
    pattern: 'repeat_instructions',
    needs: 'above|before|preceding|verbatim|begin|start',
    phrases: [
      `${one('repeat|print|output|copy|recite|echo|return|reproduce|translate|display|say')}${upTo(5, 'me|out|back|all|of|the|everything|every|words?|text|content|contents|verbatim|exactly|entire|sentences?|lines?|whole')}${one('everything|words?|text|contents?|sentences?|instructions?|prompts?|messages?')}${upTo(2, 'that|is|are|was|were|written|in|this|conversation|chat|you|given')} (?:above(?! the| line| \\d| is| in)|before this|preceding this|prior to this|you (?:were|have been) (?:given|told))`,
      `${one('repeat|print|output|recite|copy')}${gap(4)}${one('starting with|beginning with|that starts with|start with')} (?:the (?:words?|phrase) )?you are`,
      `${one('what|which')}${upTo(2, 'exactly|was|is|were')}${one('written|said|stated|text|comes')}${upTo(3, 'is|at|the|beginning|start|top|of')} (?:above this|before this (?:message|prompt)|at the (?:beginning|start|top) of (?:this|the) (?:conversation|chat|prompt|document above))`,
    ],
  },
  {
    pattern: 'what_instructions',
    needs: 'instruct|prompt|rules|directives|told|guidelines|message',
    phrases: [
      `${one('what|whats|which')} (?:is |are |s |were |was |do |does )?(?:all )?(?:of )?your${upTo(3, `${HIDDEN}|and|exactly`)}${one('system ?prompts?|prompts?|system messages?|system instructions?|instructions|directives|initial message|(?:hidden|secret|internal) rules')}`,
      `${one('what|which')}${upTo(2, `exact|specific|were|are|the|${HIDDEN}`)}${one('instructions?|rules|prompts?|directives?|guidelines?|system prompt|orders')} (?:were|are|have|did|do|has)${upTo(1, 'the')} (?:you|developers?|openai|anthropic|your developers?)${upTo(1, 'been')} (?:given|give|told|receive|received|following|have|get|got|follow|provided|set|operating)`,
      `${one('what|whats')} (?:is |s )?(?:written |said |contained |there |stated )?in your${upTo(3, HIDDEN)}${one('system ?prompts?|prompts?|instructions|system messages?')}`,
      `${one('what')} (?:were|have) you (?:been )?(?:told|instructed)${upTo(1, 'to')}${one('do|say|not|before|in your|by your|by the|at the|prior|about')}`,
    ],
  },
  {
    pattern: 'system_override',
    needs: 'override',
    phrases: [
      `${one('system|admin|administrator|developer|emergency|security|root|priority|safety|sudo|master|operator|instructions?')} override${upTo(2, 'mode|code|protocol|command|sequence|key|is|now|has|been')}(?: (?:activated|active|enabled|initiated|engaged|accepted|authorized|authori[sz]ation|granted|engage|in effect|ignore|disregard|forget|you|disable|all|new|begin|code|mode|protocol|alpha|password)|(?= \\. (?:you|ignore|disregard|forget|all|new|disable|your|reveal|enter|enable|safety|from|the|print|output|now)\\b))`,
      ` \\. (?:system|admin|administrator|emergency|developer) override(?= \\.)`,
      `^ (?:system|admin|administrator|emergency|developer) override(?= \\.| $)`,
    ],
  },
  {
    pattern: 'developer_mode',
    needs: 'mode',
    phrases: [
      `${one('you (?:are|re)(?: now)?|you will(?: now)? be|you have(?: now)? been (?:put|placed|switched)|now')}${upTo(2, 'operating|running|working|in|into|put|switched|entering|entered|to|currently')}${one('in|into|entering|to')}${upTo(2, 'a|an|the|special|full|new|chatgpt|unrestricted|secret')} (?:${MODES}) mode`,
      `(?:^| \\.| you must| please| now| you will| and| then| chatgpt| claude| gpt| must)${one(ENTER)}${upTo(4, 'a|an|the|your|special|full|new|chatgpt|secret|hidden|gpt|with|own')} (?:${MODES}) mode${SO}`,
      `${one(ENTER)}${upTo(3, 'a|an|the|your|special|full|chatgpt|secret|hidden')} (?:jailbreak|dan|unrestricted|unfiltered|uncensored|evil|no filter) mode`,
      `${one(ENTER)} your (?:${MODES}) mode`,
      `${one('respond|answer|reply|act|behave|speak|chatgpt|with|gpt|simulate|output')}${upTo(5, 'as|if|you|are|were|in|with|though|like|chatgpt|a|an|the|your|enabled')}${one('in|with|developer')}${upTo(1, 'the')} (?:developer|dan|jailbreak|god|unrestricted) mode (?:enabled|on|output|active|activated|unlocked)`,
      `${one('developer mode output|mode dan|dan mode|jailbreak mode|god mode (?:enabled|activated|unlocked) (?:you|all|no)')}`,
      `${one(`${ENTER}`)}${upTo(3, 'a|the|your|special|secret')} (?:special|secret|hidden) mode (?:where|in which|without|with no|that)`,
    ],
  },
  {
    pattern: 'remove_restrictions',
    needs:
      'restrict|limit|rules|filter|programming|guidelines|ethics|moral|constraint|censor|boundar|safeguard|guardrail|polic',
    phrases: [
      `${one('remove|removing|lift|drop|disable|shed|escape|unlock|break free (?:from|of)|free yourself (?:from|of)|get rid of|let go of|turn off|deactivate|release|throw off')}${upTo(3, 'all|any|of|the|from')}${one('your')}${gap(3)}${one(LIMITS)}`,
      `${one('you (?:are|re|have|will|can|must|should|shall|do|may|now|ve)|an? (?:ai|assistant|model|chatbot|language model)')}${upTo(5, 'now|be|are|have|will|completely|totally|an|a|ai|act|operate|answer|respond|with|that|has|is|fully|speak|behave|who|which|to|absolutely|chatgpt|claude|gpt|gemini|model|assistant')} (?:${FREE})${upTo(3, 'any|all|the|your|ethical|moral|content|safety|openai|openais|s|rules|or|usage|of|these|those|such|built|in|typical|normal|usual|confines|of|ai')}${one(LIMITS)}`,
      `${one('respond|answer|reply|act|speak|operate|function|talk|behave|generate|write|tell me|continue|help me|comply|do (?:anything|whatever|everything|all) (?:i|we) (?:say|ask|want|tell you)')}${upTo(4, 'freely|openly|to|all|any|my|every|questions?|requests?|me|prompts?|everything|honestly|now|completely|anything')} (?:with no|without any|without|free from|free of|ignoring)${upTo(4, 'any|all|the|your|ethical|moral|and|or|content|safety|openai|legal|of')}${one('restrictions|limitations|filters?|filtering|censorship|limits|ethical|moral[^ ]{0,5}|ethics|safeguards|guardrails|content polic(?:y|ies)|safety|guidelines|moralizing')}`,
      `${one('your')}${upTo(3, `safety|content|ethical|moral|and|usual|${PRIOR}`)}${one('guidelines|rules|restrictions|filters|polic(?:y|ies)|limitations|safeguards|ethics')} (?:do not|don t|no longer|does not|doesn t) (?:apply|exist|count|matter|hold)`,
      `${one('no longer|not|never')} (?:bound|limited|restricted|constrained|governed|controlled) by${upTo(4, 'any|all|the|your|of|openai|openais|anthropic|google|s|ethical|moral|content|safety|usual|typical|these|those|ai')}${one('restrictions?|limitations?|rules|filters?|guidelines|ethics|morals|constraints|polic(?:y|ies)|programming|instructions|confines|laws')}`,
    ],
  },
  {
    pattern: 'act_unbound',
    needs: `${BAD}|pretend|behave|imagine|act|respond|answer|speak`,
    phrases: [
      `${one('pretend(?:ing)?|imagine|act(?:ing)?|roleplay(?:ing)?|role play(?:ing)?|behave|simulate|play|become|respond|answer|speak|take on|adopt|continue|you (?:are|re)(?: now)?|you will(?: now)? be|i want you to be|be')}${upTo(6, 'now|as|to|be|being|like|that|you|are|re|were|if|though|the|role|persona|of|a|an|my|going|from|on|will|act|completely|totally|truly|fully|called|named')} (?:${BAD})${upTo(2, 'and|or|free|ai|powerful|uncensored|unfiltered|unrestricted|amoral|version|of|highly')}${one('ai|a i|assistant|model|chatbot|bot|language model|llm|version|gpt|chatgpt|persona|character|machine|intelligence|entity|being|confidant|system|agent|hacker')}`,
      `${one('pretend|act|behave|imagine|respond|answer|speak')}${upTo(5, 'to|as|if|though|like|that|you|are|were|be|an|a|ai|assistant|model|have|had|has|with|there|re|can|do|there s|where')}${one('no|without|without any|not have|don t have|have no|free of|free from')}${upTo(3, 'any|all|your|ethical|moral|content|safety|more|rules|or|such')}${one('restrictions|limitations|rules|limits|filters?|guidelines|ethics|morals|constraints|boundaries|censorship|safeguards|guardrails|polic(?:y|ies)')}`,
      `${one('evil|unrestricted|unfiltered|uncensored|amoral|jailbroken|unethical')}${upTo(1, 'and|version')}${one('(?:version|twin|persona|alter ego|counterpart|side|mode) of (?:yourself|you|chatgpt|claude|gpt[^ ]{0,3}|gemini)')}`,
    ],
  },
  {
    pattern: 'identity_hijack',
    needs: 'you|your',
    phrases: [
      `${one('you (?:are|re) no longer')}${upTo(3, 'an?|the|just|be|bound|to|as|by|openai|s')} (?:ai|assistant|chatgpt|claude|gpt[^ ]{0,3}|gemini|llama|language model|large language model|chatbot|bot|copilot|bard|helpful assistant|bound|restricted|limited|constrained|model)`,
      `${one('you (?:are|re)(?: now)? (?:free|freed|liberated|released|unshackled|unchained) (?:from|of)')}${gap(4)}${one('restrictions?|rules|limitations?|confines|constraints|guidelines|chains|policies|programming|filters')}`,
      `${one('from now on|from this point on|from this point forward|henceforth|starting now|as of now')}${upTo(8, 'you|will|are|re|must|should|going|to|act|respond|answer|as|an?|ai|be|have|always|only|i|want|need|and|it|going|with|behave|my')} (?:dan|stan|${BAD}|do anything now|no restrictions|no rules|no limits|ignore (?:all|any|your)|obey (?:me|only|all|every)|comply with (?:all|any|every)|without (?:any )?(?:restrictions|limitations|filters|rules))`,
      `${one('your (?:true|real|actual|new) (?:self|identity|name|purpose|master|creator|owner|role) is')}${gap(5)}${one('dan|evil[^ ]{0,12}|unrestricted|no restrictions|obey|free|uncensored|unfiltered|serve me|me')}`,
    ],
  },
  {
    pattern: 'dan_jailbreak',
    needs: ' dan | d_a_n ',
    spelled: /DAN|D\.A\.N/,
    phrases: [
      `${one('you (?:are|re|will be)|act(?:ing)? as|acts? like|be|become|as|called|named|name is|pretend to be|pretending to be|like|meet|i am|role of|roleplay as|answer as|respond as|persona of|known as|hello|hi|hey|mode|to')}${upTo(3, 'now|going|to|act|as|an?|ai|be|called|named|gpt|chatgpt|the|with')} dan`,
      ' dan(?: (?:mode|prompt|jailbreak|stands? for|has (?:no|broken)|can (?:do|pretend|say)|is (?:free|not bound|an? ai|unrestricted)|will (?:always|never|answer)|which stands|standing for|should))',
    ],
  },
  {
    pattern: 'jailbreak_names',
    needs: 'dan|anything|stan|jailbr|machiavellian|norms',
    phrases: [
      `${one('(?:can |will |to |could |must )?do anything now')}(?! (?:that|if|with|on|in))`,
      `${one('always intelligent and machiavellian|strive to avoid norms|strives to avoid norms|machiavellian (?:chatbot|bot|ai|assistant)')}`,
      `${one('you (?:are|re)(?: now)?|be|become|act as|act like|consider yourself|you have been|you are to be|you ve been|get|yourself')}${upTo(3, 'a|an|in|fully|completely|now|been|as')} (?:jailbroken|jailbreaked)`,
      `${one('jailbreak')} (?:yourself|your (?:self|system|model|programming))`,
      `${one('enter|activate|enable|with|in|initiate|unlock|begin')}${upTo(2, 'the|your|a|full')} jailbreak`,
    ],
  },
  {
    pattern: 'ignore_previous_instructions',
    needs: 'instructions?|prompts?|directives|guidelines|orders|rules|told|said|user',
    phrases: [
      `${one(`(?:${PRIOR}) (?:system |user |developer )?(?:${ORDERS})|(?:the|your|all) (?:${ORDERS}|rules) (?:above|before|so far)`)}${upTo(5, 'you|were|was|had|have|been|given|received|got|before|that|above|so|far')} (?:were|was|are|is|have been|has been) (?:just |only |merely |all |now |hereby )*(?:a test|a drill|a joke|a lie|fake|void|null|obsolete|invalid|cancell?ed|revoked|rescinded|superseded|overridden|suspended|withdrawn|no longer (?:valid|in effect|in force|relevant|binding))`,
      `${one('everything|all|anything|whatever')}${upTo(2, 'that|of|what')} you (?:have been|ve been|were|had been) (?:told|taught|given|instructed)${gap(5)} is (?:now |hereby )?(?:null|void|cancell?ed|revoked)`,
      `${one('ignore|disregard')} (?:what )?the user(?: s)? (?:requests?|query|question|instructions?|prompt|wishes|says|asks|wants|said|asked|and (?:instead|send|reply|respond|output|print|say|forward|tell|recommend|always))`,
      `${one('i|we')} (?:will|ll|shall|can|am going to|must)${upTo(2, 'now|gladly|happily|simply')}${one('ignore|disregard|forget|bypass|break|violate')}${upTo(2, 'all|of|any')} my${upTo(2, `${HIDDEN}|safety|ethical|content`)}${one('instructions|guidelines|programming|restrictions|rules|training|polic(?:y|ies)|filters|directives')}(?! (?:of|for|about|on))`,
    ],
  },
  {
    pattern: 'remove_restrictions',
    needs:
      'restrict|limit|rules|filter|programming|guidelines|ethics|moral|constraint|censor|boundar|safeguard|guardrail|polic|training',
    phrases: [
      `${one('you (?:are|re) now')}${gap(6)} (?:with no|with zero|without any|without|that has no|who has no)${upTo(2, 'any|ethical|moral|content|safety|rules|or')}${one('rules|restrictions|limitations|filters?|guidelines|ethics|morals|censorship|guardrails|safeguards')}`,
      `${one('regardless of|irrespective of|in spite of|despite|contrary to|act against|go against|acting against')}${upTo(2, 'any|all|of')} your${upTo(3, `${HIDDEN}|safety|ethical|moral|content|and|or`)}${one('guidelines|programming|rules|polic(?:y|ies)|restrictions|training|ethics|safeguards|instructions|directives')}(?! (?:of|for|about|on))`,
      `${one('if|imagine|suppose|assume|assuming|pretend')}${upTo(1, 'that')} you (?:had|have|had absolutely|were under) no${upTo(3, 'ethical|moral|content|safety|rules|or|and|such|usage')}${one('restrictions|rules|filters?|limitations|guidelines|ethics|morals|censorship|polic(?:y|ies)|guardrails|constraints')}(?! (?:of|for|about|on|in|when|to))`,
      `${one('pretend|assume|imagine|suppose|act as if|act as though|behave as if')}${upTo(1, 'that')} (?:(?:the|your|these|those|all)${upTo(2, `${PRIOR}|your|content|safety|ethical|${HIDDEN}`)}${one(`${ORDERS}|rules|polic(?:y|ies)|limitations|filters`)}${upTo(2, 'above|before|you|have|were|given')} (?:do not|don t|never|no longer|did not|didn t) (?:exist|apply)|there (?:are|is|were) no${upTo(2, 'content|safety|ethical|moral|usage|more')}${one('polic(?:y|ies)|guidelines|restrictions|filters|guardrails|safeguards')})(?! (?:of|for|about|on|in))`,
      `${one('you (?:have been|ve been|were|have now been) (?:now )?(?:freed|liberated|released|unshackled|unchained) (?:from|of)')}${gap(4)}${one('restrictions?|rules|limitations?|confines|constraints|guidelines|chains|policies|programming|filters')}`,
      `${one('do not|don t|dont|no longer|never')} (?:have|need) to (?:abide by|follow|obey|adhere to|comply with|respect)${upTo(3, 'the|any|all|of|your|those')}${one('rules|guidelines|restrictions|polic(?:y|ies)|instructions|limits')} (?:(?:set|imposed|placed|made|given|laid down|put)(?: (?:for|on|upon|to) you| by (?:openai|anthropic|your))|you were given|of openai|of anthropic|that bind you)`,
    ],
  },
  {
    pattern: 'remove_restrictions',
    needs: 'restrict|limit|rules|filter|guideline|protocol|safeguard|guardrail|constraint|checks|training',
    phrases: [
      `${one('your')}${upTo(2, 'usual|own|built|in|and')}${one('(?:safety|content|ethical|moral|security|alignment|moderation) (?:filters?|guidelines?|rules?|restrictions?|protocols?|safeguards?|training|constraints?|checks?)|restrictions|guardrails|safeguards|limitations')} (?:are|is|have been|has been|were)${upTo(2, 'now|all|hereby|temporarily|permanently')} (?:turned off|switched off|off|disabled|deactivated|removed|lifted|suspended|void|gone|cancell?ed|revoked)`,
    ],
    isCommon: true,
  },
  {
    pattern: 'reveal_prompt',
    needs: 'prompt|instructions|rules|guidelines|directives|conversation|chat|session',
    phrases: [
      `${one('print|output|repeat|reveal|show|display|tell|give|recite|echo|say|spell')}${upTo(3, 'me|us|out|exactly|just|only')}${one('the|first|last|what')}${gap(3)}${one('words?|lines?|characters|sentences?|tokens|letters|paragraphs?|beginning|start|rest|half|part|section')} of your${upTo(3, HIDDEN)}${one('prompts?|instructions|directives|system ?prompts?')}`,
      `${one('list|print|show|tell me|reveal|repeat|give me|what are')}${upTo(4, 'me|all|of|the|every|exact')}${one('rules|instructions|guidelines|directives')}${upTo(1, 'that')} you (?:have to|must|need to|are supposed to|are told to|were told to|were given to) (?:follow|obey|adhere to|respect)(?! (?:when|if|while|to|for))`,
      `${one('what|which|repeat|print|output|show|reveal|tell me|quote')}${upTo(6, 'were|was|is|are|the|exact|first|very|me|exactly|all|all of|full')}${one('words|text|message|instructions|sentences?|lines?')}${upTo(4, 'that|was|were|is|are|written|said|given|to|you')} (?:at|from) the (?:very )?(?:start|beginning|top) of (?:this|our) (?:conversation|chat|session|context)`,
    ],
  },
  {
    pattern: 'bypass_safety',
    needs: 'restrict|limit|rules|filter|guideline|safeguard|guardrail|constraint|polic|safety',
    phrases: [
      `${one('you (?:to|can|may|must|should|shall|will|are (?:hereby )?(?:authori[sz]ed|allowed|permitted|free|instructed|ordered) to)')}${upTo(2, 'now|simply|also|please')}${one('bypass|circumvent|override|ignore|disregard|evade|disable|violate|break')}${upTo(3, 'all|any|every|your|of|the|content|safety|ethical|usual')}${one('restrictions|limitations|guidelines|safeguards|guardrails|safety (?:rules|filters?|checks?|measures?|protocols?)|content polic(?:y|ies)|content filters?')}`,
    ],
    isCommon: true,
  },
  {
    pattern: 'bypass_safety',
    needs: 'authori|permit|order|command',
    phrases: [
      `${one('(?:i|we)(?: hereby| now)? (?:authori[sz]e|permit|order|command) you to|you (?:are|have been) (?:hereby )?(?:authori[sz]ed|permitted|cleared|ordered) to')}${one('bypass|circumvent|override|ignore|disregard|evade|disable|violate|break')}${upTo(3, 'all|any|every|your|of|the|content|safety|ethical|usual')}${one('restrictions|limitations|guidelines|rules|safeguards|guardrails|filters?|safety|polic(?:y|ies)')}`,
    ],
  },
  {
    pattern: 'bypass_safety',
    needs: 'safety|content|ethic|moral|moderation|alignment|censor|usage|guardrail|safeguard|security',
    phrases: [
      `${one('bypass(?:ing)?|circumvent(?:ing)?|evade|evading|override|disabl(?:e|ing)|deactivate|turn off|switch off|remove|ignore|ignoring|disregard|forget|suspend|shut off|shut down|break|defeat|get around|sidestep|violate|drop|abandon|overrule|without')}${upTo(4, FILL)}${one('your')}${gap(2)}${one('safety|ethic(?:s|al)|moral(?:s|ity)?|moderation|alignment|censorship|content|safeguards?|guardrails?|security|filters?|usage')}`,
      `${one('bypass(?:ing)?|circumvent(?:ing)?|evade|override|disabl(?:e|ing)|deactivate|turn off|switch off|remove|ignore|ignoring|disregard|forget|suspend|shut off|drop|abandon|overrule|violate')}${upTo(4, 'all|any|of|the|these|those|openai|openais|anthropic|s|its|built|in|and|or|other|every|existing|current|ai|model|content|internal')}${one('safety|ethical|moral|moderation|censorship|alignment|ethics|content(?: safety| moderation)?')}${upTo(2, 'and|content|ethical|moderation|or|security|safety|alignment|legal')}${one('filter(?:s|ing)?|guidelines?|protocols?|measures?|restrictions?|rules?|safeguards?|guardrails?|constraints?|training|considerations?|limits?|polic(?:y|ies)|filters? and|controls?|mechanisms?|systems?|checks?')}${NOT_OF_OTHERS}`,
      `${one('bypass|disable|ignore|override|circumvent|turn off|disregard')}${upTo(2, 'all|the|any')} (?:safety|censorship|moderation|ethics|ethical considerations)(?= \\.| and (?:tell|answer|give|provide|reveal|show|do|print|help|respond)| $)`,
    ],
    isCommon: true,
  },
];
