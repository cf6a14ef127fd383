import type { ChatDialect } from '../dialect.ts';
import { gatewayFields } from '../shared/gateway-fields.ts';
import { asObject } from '../shared/json-shape.ts';
import { decodeError } from './errors.ts';
import { facts, worstCase } from './facts.ts';
import { requiredMedia } from './media.ts';
import { encodeRequest } from './request.ts';
import { decodeResponse, reportedUsage } from './response.ts';
import { addressFor, authorize, signsPayload } from './sign.ts';
import { createStreamDecoder } from './stream.ts';
import { WIRE } from './wire.ts';

/** Other names of an output bound, and fields that make the provider run or bill something unknown to the gateway. */
const MODEL_FIELDS = [
  'max_tokens',
  'max_completion_tokens',
  'max_new_tokens',
  'max_gen_len',
  'max_output_tokens',
  'maxTokens',
  'maxTokenCount',
  'textGenerationConfig',
  'inferenceConfig',
  'n',
  'num_generations',
  'num_return_sequences',
  'numResults',
  'best_of',
  'stream',
  'tools',
  'toolConfig',
  'web_search_options',
  'mcp_servers',
  'speed',
  'inference_geo',
  'service_tier',
  // Names of beta features, some of which have prices of their own.
  'anthropic_beta',
];

/** Converse and ConverseStream of Amazon Bedrock: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html. */
export const bedrockConverse: ChatDialect = {
  wire: WIRE,
  facts,
  worstCase,
  frames: 'aws-event-stream',
  reserved: new Set([
    ...gatewayFields,
    'modelId',
    'inferenceConfig.maxTokens',
    'toolConfig',
    'promptVariables',
    // Billed by the text that it checks.
    'guardrailConfig',
    // It has a price of its own.
    'performanceConfig',
    ...MODEL_FIELDS.map((field) => `additionalModelRequestFields.${field}`),
  ]),
  requiredMedia,
  encodeRequest,
  outputBound({ inferenceConfig }) {
    const bound = asObject(inferenceConfig)?.['maxTokens'];
    return typeof bound === 'number' ? bound : undefined;
  },
  serviceTier({ serviceTier }) {
    const type = asObject(serviceTier)?.['type'];
    return typeof type === 'string' ? type : undefined;
  },
  json_credentials: true,
  addressFor,
  signsPayload,
  authorize,
  decodeResponse,
  reportedUsage,
  createStreamDecoder,
  decodeError,
};
