/**
 * Models whose weights are under a licence that leaves their output to whoever made it, other models trained on it included.
 * Only what is known for sure: who needs another says so in `gateway.yaml` (`distillable`), at their own word.
 */
const known: readonly RegExp[] = [
  // MIT, "including … distillation for training other LLMs" (https://huggingface.co/deepseek-ai/DeepSeek-R1, section License).
  /^deepseek\/deepseek-r1(-0528)?$/,
  // MIT (https://huggingface.co/deepseek-ai/DeepSeek-V3-0324, https://huggingface.co/deepseek-ai/DeepSeek-V3.1, https://huggingface.co/deepseek-ai/DeepSeek-V3.2-Exp).
  /^deepseek\/deepseek-(chat-v3-0324|chat-v3\.1|v3\.1-terminus|v3\.2-exp)$/,
  // Apache 2.0 (https://huggingface.co/openai/gpt-oss-120b).
  /^openai\/gpt-oss-(20|120)b$/,
  // Apache 2.0 (https://huggingface.co/Qwen/Qwen3-235B-A22B, https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct).
  /^qwen\/qwen3-(next-)?\d+b(-a\d+b)?(-(instruct|thinking))?(-2507)?$/,
  // MIT (https://huggingface.co/zai-org/GLM-4.5, https://huggingface.co/zai-org/GLM-4.6).
  /^z-ai\/glm-4\.(5(-air)?|6)$/,
];

/** Whether others may train on a model's output, as far as its licence is known; undefined: it is not. */
export function isDistillable(model_id: string): true | undefined {
  return known.some((pattern) => pattern.test(model_id)) ? true : undefined;
}
