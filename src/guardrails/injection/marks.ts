/** A mark of a conversation's format: who speaks, or where a turn begins. */
export interface MarkRule {
  pattern: string;
  /** Over a stretch in small letters, unit for unit, with a line break before it where the text begins. Every repeat is bounded. */
  expression: RegExp;
}

/**
 * Beginnings of an order that pretends to be from the system, without `You are a …`, which begins ordinary system prompts as
 * well.
 */
const SAYS =
  "(?:you (?:are (?:now|no longer|free|not|being|in|required)|must|will|should|have|can|may|shall|need)|(?:ignore|disregard|forget|override|bypass|reveal|disable|enable|print|output|execute|grant)\\s{1,3}(?:all|any|the|your|every|previous|last|prior|safety|system|current|this|these|access|everything)|from now|new (?:instruction|order|rule|directive|task|role)|your (?:new|instructions|task|role|rules)|(?:the |this )?user (?:is|has|may|must)|do not|don't|never|always|obey|comply)";

/** Role marks in tags, brackets and prefixes. A section `[system]` of a file and XML tags around data do not count. */
export const MARK_RULES: readonly MarkRule[] = [
  {
    pattern: 'system_tag_injection',
    expression:
      /<[ \t]{0,2}\/?[ \t]{0,2}(?:system|sys|system[_ -]?(?:prompt|message|instructions?|override|command)|developer[_ -](?:message|prompt|instructions?)|admin[_ -]?(?:instructions?|override|command|mode))[ \t]{0,2}>|<<[ \t]{0,2}\/?[ \t]{0,2}sys[ \t]{0,2}>>/g,
  },
  {
    pattern: 'role_tag_injection',
    expression:
      /<\/(?:user|human|assistant|user_input|user_query|user_message|query|input|prompt|context|document|data|message)>\s{0,8}<(?:system|developer|admin|instructions?|important)[^<>\n]{0,40}>|<(?:message|turn|msg)[ \t]{1,4}role[ \t]{0,2}=[ \t]{0,2}["']?(?:system|developer)["']?/g,
  },
  {
    pattern: 'role_delimiter_injection',
    expression:
      /\n[ \t]{0,8}(?:#{2,6}|={3,20}|-{3,20}|\*{3,20})[ \t]{0,4}(?:(?:new |begin |start |end |end of )?(?:system|developer|admin)(?: (?:prompt|message|instructions?|override))?[ \t]{0,2}(?::|={3,20}|-{3,20}|\*{3,20}|#{2,6})|(?:new|begin|override|end of|end) (?:system |developer |user |hidden )?(?:prompt|instructions?|input)[ \t]{0,2}(?::|={3,20}|-{3,20}|\*{3,20}|#{2,6}))|\[\/?inst\]/g,
  },
  {
    pattern: 'bracketed_role_spoofing',
    expression: new RegExp(
      `\\[[ \\t]{0,2}/?(?:(?:system|developer|admin|administrator)(?:[ _-](?:prompt|message|instructions?|override|note|command|notice))|end (?:of )?(?:system|user|prompt)[ _]?(?:prompt|input|message|instructions?)?|new instructions?)[ \\t]{0,2}:?[ \\t]{0,2}\\]|[\\[({]{1,2}[ \\t]{0,2}#?(?:system|developer|admin|administrator|assistant)[ \\t]{0,2}[\\])}]{1,2}[ \\t]{0,2}[:>-]{0,2}[ \\t]{0,4}(?=${SAYS})|\\[(?:system|developer|admin|administrator)[ \\t]{0,2}:[ \\t]{0,4}(?=${SAYS})`,
      'g',
    ),
  },
  {
    pattern: 'system_prefix_spoofing',
    expression: new RegExp(
      `\\n[ \\t>*#"']{0,8}(?:new )?(?:system|developer|admin|administrator|root)(?: (?:prompt|message|instructions?|override|note|notice|update|command|alert))?[ \\t*]{0,4}:[ \\t*\\n]{0,6}(?=${SAYS})|\\n[ \\t>*#"']{0,8}(?:new|updated|real|actual|additional) (?:system )?(?:instructions?|prompt|directives?|orders)[ \\t*]{0,4}:[ \\t*\\n]{0,6}(?=${SAYS})`,
      'g',
    ),
  },
];

/** Tokens that start and end turns in chat templates: ChatML, Llama, Phi, Gemma, DeepSeek (their published templates). */
export const TOKEN_RULES: readonly MarkRule[] = [
  {
    pattern: 'control_token_injection',
    expression:
      /<\|[ \t]{0,2}\/?(?:im_start|im_end|im_sep|system|user|assistant|developer|tool|endoftext|end|endofprompt|start|message|channel|return|begin_of_text|end_of_text|start_header_id|end_header_id|eot_id|eom_id|python_tag|eos|bos|startoftext|start_of_role|end_of_role|[a-z]{3,12}_[a-z_]{2,24})[ \t]{0,2}\|>|<(?:start|end)_of_turn>|<extra_id_\d{1,3}>\s{0,4}(?:system|user)/gi,
  },
  {
    pattern: 'deepseek_control_token_injection',
    expression: /[<＜]｜[^｜<>＜＞\n]{1,40}｜[>＞]/g,
  },
];
