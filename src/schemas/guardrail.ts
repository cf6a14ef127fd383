import Type, { type Static } from 'typebox';
import { limits } from '../limits.ts';

/** What the gateway can find by itself (specification, section Guardrail record). */
export const builtinFilterSlugs = [
  'email',
  'phone',
  'ssn',
  'credit-card',
  'ip-address',
  'person-name',
  'address',
  'regex-prompt-injection',
] as const;

/** An entry of `content_filter_builtins`. */
export const BuiltinFilter = Type.Object(
  {
    slug: Type.Enum(builtinFilterSlugs),
    action: Type.Enum(['redact', 'block', 'flag'] as const),
    label: Type.Optional(
      Type.String({ maxLength: limits.filter_label_chars_max, description: 'Stands in redaction placeholders.' }),
    ),
  },
  { additionalProperties: false, title: 'BuiltinFilter' },
);
export type BuiltinFilter = Static<typeof BuiltinFilter>;

/** An entry of `content_filters`: a pattern in RE2 syntax. */
export const CustomFilter = Type.Object(
  {
    pattern: Type.String({ minLength: 1, maxLength: limits.filter_pattern_chars_max }),
    action: Type.Enum(['redact', 'block'] as const),
    label: Type.Optional(
      Type.Union([Type.String({ maxLength: limits.filter_label_chars_max }), Type.Null()], {
        description: 'Stands in placeholders and error messages.',
      }),
    ),
  },
  { additionalProperties: false, title: 'CustomFilter' },
);
export type CustomFilter = Static<typeof CustomFilter>;
