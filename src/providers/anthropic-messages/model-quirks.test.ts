import { expect, test } from 'vitest';
import { anthropicModelQuirks } from './model-quirks.ts';

// model thinking effort sampling prefill schema
test.each(
  `
  claude-3-haiku-20240307                      none      -       both      yes      shim
  claude-3-5-sonnet-20241022                   none      -       both      yes      shim
  claude-3-opus-latest                         none      -       both      yes      shim
  claude-3-7-sonnet-20250219                   manual    -       both      yes      shim
  claude-sonnet-4-0                            manual    -       both      yes      shim
  claude-sonnet-4-20250514                     manual    -       both      yes      shim
  claude-opus-4@20250514                       manual    -       both      yes      shim
  claude-opus-4-1-20250805                     manual    -       one       yes      shim
  claude-sonnet-4-5-20250929                   manual    -       one       yes      format
  claude-haiku-4-5                             manual    -       one       yes      format
  claude-opus-4-5-20251101                     manual    high    one       yes      format
  claude-opus-4.5                              manual    high    one       yes      format
  us.anthropic.claude-opus-4-6-v1              adaptive  max     one       no       format
  claude-sonnet-4-6                            adaptive  max     one       no       format
  claude-opus-4-7                              adaptive  max     none      no       format
  claude-opus-4-8                              adaptive  max     none      no       format
  claude-sonnet-5                              adaptive  max     none      no       format
  claude-opus-5                                adaptive  max     none      no       format
  claude-fable-5                               adaptive  max     none      no       format
  claude-opus-5-5                              adaptive  max     none      no       format
  claude-novel-9                               adaptive  max     none      no       format
  glm-5                                        -         -       both      yes      format
`
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/)),
)('%s: thinking %s, effort %s, sampling %s, prefill %s, schema by %s', (...row) => {
  const [model, ...expected] = row;
  const {
    thinking,
    effort_max: effortMax,
    no_sampling: noSampling,
    one_sampling: oneSampling,
    no_prefill: noPrefill,
    json_schema_shim: jsonSchemaShim,
  } = anthropicModelQuirks(model!);
  expect([
    thinking ?? '-',
    effortMax ?? '-',
    noSampling ? 'none' : oneSampling ? 'one' : 'both',
    noPrefill ? 'no' : 'yes',
    jsonSchemaShim ? 'shim' : 'format',
  ]).toEqual(expected);
});

// model                          off      forced tool  system inside
test.each(
  `
  claude-opus-4-8                 off      yes          yes
  claude-opus-4-7                 off      yes          no
  claude-sonnet-5                 on       yes          no
  claude-opus-5                   on       yes          yes
  claude-fable-5                  always   yes          yes
  claude-fable-5-20260609         always   yes          yes
  claude-fable-5-1                always   no           yes
  claude-mythos-preview           always   yes          no
  claude-opus-5-5                 always   no           yes
  claude-haiku-5-5                on       no           yes
`
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/)),
)('%s: thinks by default %s, forced tool %s, system message inside the conversation %s', (...row) => {
  const [model, ...expected] = row;
  const {
    thinking_default: thinkingDefault,
    no_forced_tool: noForcedTool,
    mid_system: midSystem,
  } = anthropicModelQuirks(model!);
  expect([thinkingDefault ?? 'off', noForcedTool ? 'no' : 'yes', midSystem ? 'yes' : 'no']).toEqual(expected);
});
