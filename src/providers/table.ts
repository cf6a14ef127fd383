import type { EndpointParameter, Parameter } from '../schemas/endpoint.ts';
import type { Wire } from '../schemas/inner.ts';
import type { EmbeddingWire } from './embeddings/dialect.ts';
import type { Quirks } from './quirks.ts';
import type { TranscriptionWire } from './transcription/dialect.ts';

/** A provider that is known without a configuration file. Data only. */
export interface ProviderRow {
  slug: string;
  /** Display name, the public service's `provider_name`. */
  name: string;
  dialect: Wire;
  /** The wire of embeddings, if it does not follow from the chat wire. */
  embeddings_dialect?: EmbeddingWire;
  /** The wire of transcriptions, if it does not follow from the chat wire. */
  transcription_dialect?: TranscriptionWire;
  /** May contain `{NAME}` of environment variables, all of which must be set to enable the provider. */
  base_url: string;
  /** Replaces a base URL with variables for own credentials, which contain the missing parts. */
  own_base_url?: string;
  /** Environment variables for the credential; the first one that is set is used. */
  credential_variables: readonly string[];
  /**
   * Set if one of those variables holds only a part of a credential, which is then JSON text: its members by their variables, and the
   * variables that may be unset.
   */
  credential_parts?: Readonly<
    Record<string, { members: Readonly<Record<string, string>>; optional: readonly string[] }>
  >;
  /** For local servers: the variable with the address, which replaces `base_url`; the credential is then optional. */
  address_variable?: string;
  /** Serves any model named `<slug>/<upstream model>`, free of charge: the operator's own machine. */
  any_model?: true;
  /** The provider's id in models.dev, from which the bundled catalog is built. */
  source?: string;
  /** The variants of models that can be called, by the value of an environment variable; the first matching pattern applies. */
  variants_by?: {
    variable: string;
    variants: readonly (readonly [RegExp, readonly string[]])[];
    /** The format of its values, with an example. */
    form: RegExp;
    example: string;
  };
  /** Matches models whose sampling this provider has fixed, although other providers do not. */
  fixed_sampling?: RegExp;
  /** The parameters of this provider's endpoints, before the facts of the model are applied. */
  parameters: readonly EndpointParameter[];
  quirks: Quirks;
  /** Default: false, so that output which a provider may still bill is read and metered. For most providers, the public service documents it. */
  abort_stops_billing?: true;
}

const chat: readonly Parameter[] = [
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'max_tokens',
  'max_completion_tokens',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'seed',
  'response_format',
  'structured_outputs',
  'stop',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'include_reasoning',
  'reasoning',
  'reasoning_effort',
];
/** Additional parameters of hosts of open models, which run vLLM, SGLang or similar servers. */
const openHost: readonly Parameter[] = [...chat, 'top_k', 'min_p', 'repetition_penalty'];
const openAi: readonly EndpointParameter[] = [...chat, 'verbosity', 'prediction'];
// https://docs.claude.com/en/api/messages
const messages: readonly Parameter[] = [
  'temperature',
  'top_p',
  'top_k',
  'max_tokens',
  'max_completion_tokens',
  'response_format',
  'structured_outputs',
  'stop',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'include_reasoning',
  'reasoning',
  'reasoning_effort',
  'verbosity',
];
// https://ai.google.dev/api/generate-content#GenerationConfig
const gemini: readonly Parameter[] = [
  ...chat.filter((name) => name !== 'logit_bias' && name !== 'parallel_tool_calls'),
  'top_k',
];
const without = (set: readonly Parameter[], ...names: Parameter[]) => set.filter((name) => !names.includes(name));

/**
 * Only OpenAI and Azure have the role `developer`, and distinguish `max_tokens` and `max_completion_tokens` by model. Some servers or
 * templates do not read the text of a system message or a tool result from a list.
 */
const compatible: Quirks = { system_role: 'system', output_bound_field: 'max_tokens', plain_text: true };

/** For hosts that leave the thoughts of some open models in the content (https://fireworks.ai/docs/deepseek/general-deepseek). */
const openModels: Quirks = { ...compatible, think_tags: true };

/**
 * Their documentation does not mention `n`, and they return one answer for any value: https://docs.ollama.com/api/openai-compatibility,
 * https://api-docs.deepseek.com/api/create-chat-completion, https://docs.perplexity.ai/api-reference/chat-completions-post. Groq and
 * Cerebras refuse more than 1 (https://console.groq.com/docs/openai).
 */
const oneAnswer: Quirks = { refused_parameters: ['n'] };

const laboratories: readonly ProviderRow[] = [
  {
    slug: 'openai',
    name: 'OpenAI',
    dialect: 'openai-chat',
    base_url: 'https://api.openai.com/v1',
    credential_variables: ['OPENAI_API_KEY'],
    source: 'openai',
    parameters: openAi,
    // https://platform.openai.com/docs/api-reference/chat/create: `max_tokens` is refused by reasoning models.
    quirks: {
      output_bound_field: 'max_completion_tokens',
      names_in_text: false,
      tool_properties: true,
      allowed_tools: true,
      native_search: 'openai',
    },
    abort_stops_billing: true,
  },
  {
    slug: 'anthropic',
    name: 'Anthropic',
    dialect: 'anthropic-messages',
    base_url: 'https://api.anthropic.com/v1',
    credential_variables: ['ANTHROPIC_API_KEY'],
    source: 'anthropic',
    parameters: messages,
    quirks: { native_search: 'anthropic' },
    abort_stops_billing: true,
  },
  {
    slug: 'google-ai-studio',
    name: 'Google AI Studio',
    dialect: 'gemini-generate-content',
    embeddings_dialect: 'gemini-embeddings',
    // https://ai.google.dev/api
    base_url: 'https://generativelanguage.googleapis.com/v1beta',
    credential_variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    source: 'google',
    parameters: gemini,
    quirks: { native_search: 'google' },
  },
  {
    slug: 'mistral',
    name: 'Mistral',
    dialect: 'openai-chat',
    base_url: 'https://api.mistral.ai/v1',
    credential_variables: ['MISTRAL_API_KEY'],
    source: 'mistral',
    // https://docs.mistral.ai/api: unknown fields are a 422.
    parameters: [...without(chat, 'logit_bias', 'logprobs', 'top_logprobs'), 'prediction'],
    quirks: {
      ...compatible,
      temperature_max: 1.5,
      stop_sequences_max: 100,
      no_stream_usage: true,
      refused_parameters: ['user', 'service_tier', 'logit_bias', 'logprobs', 'top_logprobs', 'store'],
      prefill_prefix: true,
      tool_choice_any: true,
      tool_call_id: 'mistral9',
      random_seed: true,
      assistant_between: true,
      names_in_text: true,
      document_url: true,
      replay_reasoning: 'thinking_part',
      // 256 inputs of 16,384 tokens in all, as measured by others; the documentation does not state it.
      embedding_batch: { inputs_max: 256, tokens_max: 16_000 },
      embedding_texts_only: true,
      dimensions_field: 'output_dimension',
      // https://docs.mistral.ai/api/endpoint/audio/transcriptions
      transcription_plain: true,
    },
  },
  {
    slug: 'deepseek',
    name: 'DeepSeek',
    dialect: 'openai-chat',
    base_url: 'https://api.deepseek.com/beta',
    credential_variables: ['DEEPSEEK_API_KEY'],
    source: 'deepseek',
    // https://api-docs.deepseek.com/api/create-chat-completion
    parameters: without(chat, 'seed', 'logit_bias', 'parallel_tool_calls', 'structured_outputs'),
    // The beta address accepts all fields of the plain one and `prefix` (https://api-docs.deepseek.com/guides/chat_prefix_completion).
    quirks: {
      ...compatible,
      ...oneAnswer,
      stop_sequences_max: 16,
      prefill_prefix: true,
      reasoning_field: 'thinking_effort',
      lost_reasoning: 'off',
      // "Thinking mode does not support this tool_choice" (https://github.com/deepseek-ai/DeepSeek-V3/issues/1376).
      thinking_or_forced_tool: true,
    },
    abort_stops_billing: true,
  },
  {
    slug: 'xai',
    name: 'xAI',
    dialect: 'openai-chat',
    base_url: 'https://api.x.ai/v1',
    credential_variables: ['XAI_API_KEY'],
    source: 'xai',
    // https://docs.x.ai/docs/guides/reasoning: reasoning models refuse penalties and stop.
    parameters: without(chat, 'logit_bias', 'presence_penalty', 'frequency_penalty', 'stop'),
    quirks: {
      system_role: 'system',
      output_bound_field: 'max_completion_tokens',
      reasoning_format: 'xai-responses-v1',
      x_search: true,
      native_search: 'xai',
      // Named on neither wire (https://docs.x.ai/docs/api-reference).
      refused_parameters: ['safety_identifier', 'max_tool_calls'],
    },
    abort_stops_billing: true,
  },
  {
    slug: 'cohere',
    name: 'Cohere',
    dialect: 'cohere-chat',
    base_url: 'https://api.cohere.com/v2',
    credential_variables: ['COHERE_API_KEY', 'CO_API_KEY'],
    source: 'cohere',
    // https://docs.cohere.com/reference/chat
    parameters: [...without(chat, 'logit_bias', 'top_logprobs', 'parallel_tool_calls'), 'top_k'],
    quirks: {},
    abort_stops_billing: true,
  },
  {
    slug: 'moonshotai',
    name: 'Moonshot AI',
    dialect: 'openai-chat',
    base_url: 'https://api.moonshot.ai/v1',
    credential_variables: ['MOONSHOT_API_KEY', 'MOONSHOTAI_API_KEY'],
    source: 'moonshotai',
    // https://platform.kimi.ai/docs/api/models-overview: "Cannot be modified", and any other value is a 400.
    fixed_sampling: /^kimi-(?:k2\.\d|k[3-9])/,
    parameters: without(chat, 'logit_bias', 'seed', 'logprobs', 'top_logprobs'),
    // https://platform.moonshot.ai/docs/guide/use-kimi-vision-model: images by URL are not accepted.
    quirks: {
      ...compatible,
      temperature_max: 1,
      reasoning_field: 'thinking',
      lost_reasoning: 'placeholder',
      // "tool_choice 'required' is incompatible with thinking enabled" (https://github.com/theopenco/llmgateway/pull/2090).
      thinking_or_forced_tool: true,
      inline_images: true,
    },
  },
  {
    slug: 'z-ai',
    name: 'Z.AI',
    dialect: 'openai-chat',
    base_url: 'https://api.z.ai/api/paas/v4',
    credential_variables: ['ZAI_API_KEY', 'Z_AI_API_KEY', 'ZHIPU_API_KEY'],
    source: 'zai',
    parameters: without(
      chat,
      'logit_bias',
      'seed',
      'logprobs',
      'top_logprobs',
      'presence_penalty',
      'frequency_penalty',
      'parallel_tool_calls',
    ),
    quirks: { ...compatible, ...oneAnswer, temperature_max: 1, reasoning_field: 'thinking' },
  },
  {
    slug: 'alibaba',
    name: 'Alibaba',
    dialect: 'openai-chat',
    base_url: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    credential_variables: ['DASHSCOPE_API_KEY', 'ALIBABA_API_KEY'],
    source: 'alibaba',
    parameters: [...without(chat, 'logit_bias', 'frequency_penalty'), 'top_k', 'repetition_penalty'],
    // "Temperature should be in [0.0, 2.0)".
    quirks: {
      ...compatible,
      temperature_max: 1.99,
      reasoning_field: 'enable_thinking',
      // "… does not support being set to required or object in thinking mode" (https://github.com/cloudwego/eino/issues/994).
      thinking_or_forced_tool: true,
    },
  },
  {
    slug: 'minimax',
    name: 'Minimax',
    dialect: 'anthropic-messages',
    base_url: 'https://api.minimax.io/anthropic/v1',
    credential_variables: ['MINIMAX_API_KEY'],
    source: 'minimax',
    // https://platform.minimax.io/docs/api-reference/text-anthropic-api: top_k and stop_sequences are ignored.
    parameters: without(messages, 'top_k', 'stop', 'structured_outputs'),
    quirks: { json_schema_shim: true },
  },
  {
    slug: 'perplexity',
    name: 'Perplexity',
    dialect: 'openai-chat',
    // Without /v1: https://docs.perplexity.ai/api-reference/chat-completions-post
    base_url: 'https://api.perplexity.ai',
    credential_variables: ['PERPLEXITY_API_KEY', 'PPLX_API_KEY'],
    source: 'perplexity',
    parameters: [...without(chat, 'logit_bias', 'logprobs', 'top_logprobs', 'seed'), 'top_k', 'web_search_options'],
    quirks: { ...openModels, ...oneAnswer, alternating_roles: true, native_search: 'perplexity' },
  },
  {
    slug: 'inception',
    name: 'Inception',
    dialect: 'openai-chat',
    base_url: 'https://api.inceptionlabs.ai/v1',
    credential_variables: ['INCEPTION_API_KEY'],
    source: 'inception',
    parameters: chat,
    quirks: compatible,
  },
  {
    slug: 'upstage',
    name: 'Upstage',
    dialect: 'openai-chat',
    base_url: 'https://api.upstage.ai/v1/solar',
    credential_variables: ['UPSTAGE_API_KEY'],
    source: 'upstage',
    parameters: chat,
    quirks: compatible,
  },
  {
    slug: 'stepfun',
    name: 'StepFun',
    dialect: 'openai-chat',
    base_url: 'https://api.stepfun.com/v1',
    credential_variables: ['STEPFUN_API_KEY'],
    source: 'stepfun',
    parameters: chat,
    quirks: compatible,
  },
  {
    slug: 'morph',
    name: 'Morph',
    dialect: 'openai-chat',
    base_url: 'https://api.morphllm.com/v1',
    credential_variables: ['MORPH_API_KEY'],
    source: 'morph',
    parameters: chat,
    quirks: compatible,
  },
  {
    slug: 'voyageai',
    name: 'VoyageAI by MongoDB',
    // Embeddings only.
    dialect: 'openai-chat',
    embeddings_dialect: 'voyage-embeddings',
    base_url: 'https://api.voyageai.com/v1',
    credential_variables: ['VOYAGE_API_KEY'],
    parameters: [],
    quirks: {},
  },
  {
    slug: 'deepgram',
    name: 'Deepgram',
    // Transcriptions only, like the next two.
    dialect: 'openai-chat',
    transcription_dialect: 'deepgram-transcription',
    base_url: 'https://api.deepgram.com/v1',
    credential_variables: ['DEEPGRAM_API_KEY'],
    parameters: [],
    quirks: {},
  },
  {
    slug: 'elevenlabs',
    name: 'ElevenLabs',
    dialect: 'openai-chat',
    transcription_dialect: 'elevenlabs-transcription',
    base_url: 'https://api.elevenlabs.io/v1',
    credential_variables: ['ELEVENLABS_API_KEY'],
    parameters: [],
    quirks: {},
  },
  {
    slug: 'assemblyai',
    name: 'AssemblyAI',
    dialect: 'openai-chat',
    transcription_dialect: 'assemblyai-transcription',
    base_url: 'https://api.assemblyai.com/v2',
    credential_variables: ['ASSEMBLYAI_API_KEY'],
    parameters: [],
    quirks: {},
  },
  {
    slug: 'jina',
    name: 'Jina AI',
    dialect: 'openai-chat',
    embeddings_dialect: 'jina-embeddings',
    base_url: 'https://api.jina.ai/v1',
    credential_variables: ['JINA_API_KEY'],
    parameters: [],
    quirks: {},
  },
];

const clouds: readonly ProviderRow[] = [
  {
    slug: 'azure',
    name: 'Azure',
    dialect: 'openai-chat',
    // The v1 API: no api-version, and the model in the body names the deployment
    // (https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle). A deployment must have its model's name.
    base_url: 'https://{AZURE_RESOURCE_NAME}.openai.azure.com/openai/v1',
    credential_variables: ['AZURE_API_KEY', 'AZURE_OPENAI_API_KEY'],
    source: 'azure',
    parameters: openAi,
    quirks: {
      output_bound_field: 'max_completion_tokens',
      api_key_header: 'api-key',
      tool_properties: true,
      allowed_tools: true,
      reasoning_format: 'azure-openai-responses-v1',
    },
    abort_stops_billing: true,
  },
  {
    slug: 'amazon-bedrock',
    name: 'Amazon Bedrock',
    dialect: 'bedrock-converse',
    base_url: 'https://bedrock-runtime.{AWS_REGION}.amazonaws.com',
    credential_variables: ['AWS_BEARER_TOKEN_BEDROCK', 'AWS_ACCESS_KEY_ID'],
    credential_parts: {
      AWS_ACCESS_KEY_ID: {
        members: {
          accessKeyId: 'AWS_ACCESS_KEY_ID',
          secretAccessKey: 'AWS_SECRET_ACCESS_KEY',
          sessionToken: 'AWS_SESSION_TOKEN',
        },
        optional: ['AWS_SESSION_TOKEN'],
      },
    },
    // The regions of each inference profile: https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html.
    variants_by: {
      variable: 'AWS_REGION',
      variants: [
        [/^us-gov-/, ['us-gov']],
        [/^us-/, ['us', 'global']],
        [/^eu-/, ['eu', 'global']],
        [/^ca-/, ['ca', 'us', 'global']],
        [/^ap-northeast-/, ['jp', 'apac', 'global']],
        [/^ap-southeast-[24]$/, ['au', 'apac', 'global']],
        [/^ap-/, ['apac', 'global']],
        [/^/, ['global']],
      ],
      // https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-regions.html; in other partitions: eusc-de-east-1.
      form: /^(?:us|us-gov|us-iso[a-z]?|eu|eu-iso[a-z]|eusc-[a-z]{2}|ca|ap|sa|me|af|il|mx|cn)-(?:north|south|central|(?:north|south)?(?:east|west))-\d{1,2}$/,
      example: 'us-east-1',
    },
    source: 'amazon-bedrock',
    parameters: without(messages, 'parallel_tool_calls'),
    quirks: {},
  },
  {
    slug: 'google-vertex',
    name: 'Google',
    dialect: 'gemini-generate-content',
    embeddings_dialect: 'vertex-embeddings',
    base_url:
      'https://aiplatform.googleapis.com/v1beta1/projects/{GOOGLE_VERTEX_PROJECT}/locations/{GOOGLE_VERTEX_LOCATION}/publishers/google',
    own_base_url: 'https://aiplatform.googleapis.com/v1beta1/projects/-/locations/global/publishers/google',
    credential_variables: ['GOOGLE_APPLICATION_CREDENTIALS', 'GOOGLE_VERTEX_API_KEY'],
    source: 'google-vertex',
    // The parameters of Gemini and Claude together: the catalog removes those that the endpoint's wire lacks.
    parameters: [...gemini, 'parallel_tool_calls', 'verbosity'],
    quirks: { google_cloud: true, api_key_header: 'x-goog-api-key', native_search: 'google' },
  },
  {
    slug: 'cloudflare',
    name: 'Cloudflare',
    dialect: 'openai-chat',
    base_url: 'https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1',
    credential_variables: ['CLOUDFLARE_API_KEY', 'CLOUDFLARE_API_TOKEN'],
    source: 'cloudflare-workers-ai',
    parameters: openHost,
    quirks: openModels,
    abort_stops_billing: true,
  },
];

const hosts: readonly ProviderRow[] = [
  {
    slug: 'groq',
    name: 'Groq',
    dialect: 'openai-chat',
    base_url: 'https://api.groq.com/openai/v1',
    credential_variables: ['GROQ_API_KEY'],
    source: 'groq',
    // https://console.groq.com/docs/openai: these are a 400.
    parameters: without(chat, 'logit_bias', 'logprobs', 'top_logprobs'),
    quirks: {
      system_role: 'system',
      output_bound_field: 'max_completion_tokens',
      plain_text: true,
      refused_parameters: ['logit_bias', 'logprobs', 'top_logprobs', 'metadata', 'prediction', 'n'],
      think_tags: true,
      think_in_reasoning: true,
      // "Streaming and tool use are not currently supported with Structured Outputs" (https://console.groq.com/docs/structured-outputs).
      format_alone: true,
      // https://console.groq.com/docs/speech-to-text, "Minimum Billed Length"
      transcription_seconds_min: 10,
    },
  },
  {
    slug: 'together',
    name: 'Together',
    dialect: 'openai-chat',
    base_url: 'https://api.together.xyz/v1',
    credential_variables: ['TOGETHER_API_KEY', 'TOGETHERAI_API_KEY'],
    source: 'togetherai',
    parameters: openHost,
    quirks: { ...openModels, logprobs_count: true, stop_sequences_max: 100 },
    abort_stops_billing: true,
  },
  {
    slug: 'fireworks',
    name: 'Fireworks',
    dialect: 'openai-chat',
    base_url: 'https://api.fireworks.ai/inference/v1',
    credential_variables: ['FIREWORKS_API_KEY'],
    source: 'fireworks-ai',
    parameters: openHost,
    quirks: { ...openModels, cached_tokens_header: 'fireworks-cached-prompt-tokens' },
    abort_stops_billing: true,
  },
  {
    slug: 'deepinfra',
    name: 'DeepInfra',
    dialect: 'openai-chat',
    base_url: 'https://api.deepinfra.com/v1/openai',
    credential_variables: ['DEEPINFRA_API_KEY', 'DEEPINFRA_TOKEN'],
    source: 'deepinfra',
    parameters: openHost,
    // https://deepinfra.com/docs/openai_api: up to 16.
    quirks: { ...openModels, stop_sequences_max: 16 },
    abort_stops_billing: true,
  },
  {
    slug: 'cerebras',
    name: 'Cerebras',
    dialect: 'openai-chat',
    base_url: 'https://api.cerebras.ai/v1',
    credential_variables: ['CEREBRAS_API_KEY'],
    source: 'cerebras',
    // https://inference-docs.cerebras.ai/resources/openai: these are a 400.
    parameters: without(chat, 'frequency_penalty', 'presence_penalty', 'logit_bias'),
    quirks: {
      system_role: 'system',
      output_bound_field: 'max_completion_tokens',
      plain_text: true,
      refused_parameters: ['frequency_penalty', 'presence_penalty', 'logit_bias', 'service_tier', 'n'],
    },
  },
  {
    slug: 'nebius',
    name: 'Nebius',
    dialect: 'openai-chat',
    base_url: 'https://api.tokenfactory.nebius.com/v1',
    credential_variables: ['NEBIUS_API_KEY'],
    source: 'nebius',
    parameters: openHost,
    quirks: openModels,
  },
  {
    slug: 'novita',
    name: 'Novita',
    dialect: 'openai-chat',
    base_url: 'https://api.novita.ai/openai/v1',
    credential_variables: ['NOVITA_API_KEY'],
    source: 'novita-ai',
    parameters: openHost,
    quirks: openModels,
    abort_stops_billing: true,
  },
  {
    slug: 'nvidia',
    name: 'Nvidia',
    dialect: 'openai-chat',
    base_url: 'https://integrate.api.nvidia.com/v1',
    credential_variables: ['NVIDIA_API_KEY'],
    source: 'nvidia',
    parameters: chat,
    quirks: { ...openModels, embedding_purpose: true },
  },
  {
    slug: 'huggingface',
    name: 'HuggingFace',
    dialect: 'openai-chat',
    base_url: 'https://router.huggingface.co/v1',
    credential_variables: ['HF_TOKEN', 'HUGGINGFACE_API_KEY'],
    source: 'huggingface',
    parameters: chat,
    quirks: openModels,
  },
  {
    slug: 'ollama-cloud',
    name: 'Ollama Cloud',
    dialect: 'openai-chat',
    base_url: 'https://ollama.com/v1',
    credential_variables: ['OLLAMA_API_KEY'],
    source: 'ollama-cloud',
    parameters: without(chat, 'logit_bias', 'parallel_tool_calls', 'tool_choice'),
    quirks: { ...openModels, ...oneAnswer },
  },
  {
    slug: 'baseten',
    name: 'BaseTen',
    dialect: 'openai-chat',
    base_url: 'https://inference.baseten.co/v1',
    credential_variables: ['BASETEN_API_KEY'],
    source: 'baseten',
    parameters: openHost,
    quirks: openModels,
  },
  {
    slug: 'siliconflow',
    name: 'SiliconFlow',
    dialect: 'openai-chat',
    base_url: 'https://api.siliconflow.com/v1',
    credential_variables: ['SILICONFLOW_API_KEY'],
    source: 'siliconflow',
    parameters: [...without(chat, 'logit_bias', 'logprobs', 'top_logprobs'), 'top_k', 'min_p'],
    quirks: openModels,
  },
  {
    slug: 'friendli',
    name: 'Friendli',
    dialect: 'openai-chat',
    base_url: 'https://api.friendli.ai/serverless/v1',
    credential_variables: ['FRIENDLI_TOKEN'],
    source: 'friendli',
    parameters: openHost,
    quirks: openModels,
    abort_stops_billing: true,
  },
  {
    slug: 'chutes',
    name: 'Chutes',
    dialect: 'openai-chat',
    base_url: 'https://llm.chutes.ai/v1',
    credential_variables: ['CHUTES_API_KEY'],
    source: 'chutes',
    parameters: openHost,
    quirks: openModels,
    abort_stops_billing: true,
  },
  {
    slug: 'scaleway',
    name: 'Scaleway',
    dialect: 'openai-chat',
    base_url: 'https://api.scaleway.ai/v1',
    credential_variables: ['SCALEWAY_API_KEY'],
    source: 'scaleway',
    parameters: openHost,
    quirks: openModels,
  },
  {
    slug: 'ovhcloud',
    name: 'OVHcloud',
    dialect: 'openai-chat',
    base_url: 'https://oai.endpoints.kepler.ai.cloud.ovh.net/v1',
    credential_variables: ['OVHCLOUD_API_KEY'],
    source: 'ovhcloud',
    parameters: chat,
    quirks: openModels,
  },
  {
    slug: 'vultr',
    name: 'Vultr',
    dialect: 'openai-chat',
    base_url: 'https://api.vultrinference.com/v1',
    credential_variables: ['VULTR_API_KEY'],
    source: 'vultr',
    parameters: chat,
    quirks: openModels,
  },
  {
    slug: 'wandb',
    name: 'WandB',
    dialect: 'openai-chat',
    base_url: 'https://api.inference.wandb.ai/v1',
    credential_variables: ['WANDB_API_KEY'],
    source: 'wandb',
    parameters: openHost,
    quirks: openModels,
  },
];

/**
 * Servers on the operator's own machines. Each is enabled by its address variable, such as
 * `OLLAMA_HOST=http://127.0.0.1:11434` or `VLLM_BASE_URL=http://127.0.0.1:8000/v1`, and serves any model under its own
 * name: `ollama/llama3.2:3b`, `vllm/Qwen/Qwen3-8B`. The path is `/v1` if the address has none.
 */
const localServers: readonly ProviderRow[] = (
  [
    // An address without a scheme or port is read as Ollama reads it (https://docs.ollama.com/faq).
    ['ollama', 'Ollama', 'http://127.0.0.1:11434/v1', 'OLLAMA_HOST', []],
    ['vllm', 'vLLM', 'http://127.0.0.1:8000/v1', 'VLLM_BASE_URL', ['VLLM_API_KEY']],
    ['sglang', 'SGLang', 'http://127.0.0.1:30000/v1', 'SGLANG_BASE_URL', ['SGLANG_API_KEY']],
    ['lmstudio', 'LM Studio', 'http://127.0.0.1:1234/v1', 'LMSTUDIO_BASE_URL', ['LMSTUDIO_API_KEY']],
    ['llamacpp', 'llama.cpp', 'http://127.0.0.1:8080/v1', 'LLAMACPP_BASE_URL', ['LLAMACPP_API_KEY']],
  ] as const
).map(([slug, name, baseUrl, addressVariable, credentialVariables]) => ({
  slug,
  name,
  dialect: 'openai-chat' as const,
  base_url: baseUrl,
  credential_variables: credentialVariables,
  address_variable: addressVariable,
  any_model: true as const,
  parameters: openHost,
  // Ollama and LM Studio accept images as data only (https://docs.ollama.com/api/openai-compatibility).
  // vLLM and SGLang close a trailing assistant message by default.
  quirks: {
    ...openModels,
    ...(slug === 'ollama' ? oneAnswer : {}),
    // Their samplers have no bound.
    stop_sequences_max: 100,
    inline_images: slug === 'ollama' || slug === 'lmstudio',
    tool_properties: slug === 'lmstudio',
    // Ollama and SGLang refuse other values (https://github.com/ollama/ollama/pull/17141), older versions of vLLM as well.
    reasoning_efforts: ['none', 'low', 'medium', 'high'],
    continue_final_message: slug === 'vllm' || slug === 'sglang',
  },
  abort_stops_billing: true as const,
}));

/** Every provider known without configuration, model makers first. */
export const providerRows: readonly ProviderRow[] = [...laboratories, ...clouds, ...hosts, ...localServers];

/** The row of a slug. */
export const providerRow: ReadonlyMap<string, ProviderRow> = new Map(providerRows.map((row) => [row.slug, row]));
