/**
 * Models whose weights are under a licence that allows training other models on their output: MIT or Apache 2.0, according to stored
 * copies of the pages below on 2026-11-21 (of some models, copies by others). Operators declare further models in `gateway.yaml`
 * (`distillable`), at their own responsibility.
 */
const known: readonly RegExp[] = [
  // MIT; "supports commercial use and distillation" (https://huggingface.co/deepseek-ai/DeepSeek-R1, its README, section License; .../DeepSeek-R1-0528).
  /^deepseek\/deepseek-r1(-0528)?$/,
  // MIT, the weights too (https://huggingface.co/deepseek-ai/DeepSeek-V3.1, .../DeepSeek-V3.1-Terminus, .../DeepSeek-V3.2-Exp, .../DeepSeek-V3.2).
  /^deepseek\/deepseek-(chat-v3\.1|v3\.1-terminus|v3\.2-exp|v3\.2)$/,
  // Apache 2.0 (https://arxiv.org/abs/2508.10925).
  /^openai\/gpt-oss-(20|120)b$/,
  // Apache 2.0, all open weights of Qwen3 (https://github.com/QwenLM/Qwen3, section License Agreement), in the sizes that its README names.
  /^qwen\/qwen3-(0\.6b|1\.7b|4b|8b|14b|32b|30b-a3b|235b-a22b)(-(instruct|thinking))?(-2507)?$/,
  // Apache 2.0 (https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct, .../Qwen3-Next-80B-A3B-Thinking).
  /^qwen\/qwen3-next-80b-a3b-(instruct|thinking)$/,
  // MIT (https://huggingface.co/zai-org/GLM-4.5, .../GLM-4.5-Air, .../GLM-4.6).
  /^z-ai\/glm-4\.(5(-air)?|6)$/,
];

/** Whether others may train on a model's output, as far as its licence is known; undefined if unknown. */
export function isDistillable(modelId: string): true | undefined {
  return known.some((pattern) => pattern.test(modelId)) ? true : undefined;
}
