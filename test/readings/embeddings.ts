/** An independent reading of recorded embeddings: the request in public terms, and the content of the raw answer. */
import { array, object, type Recording } from './recordings.ts';

export interface RequestReading {
  provider: string;
  model: string;
  texts: string[];
  encoding_format: 'float' | 'base64';
  dimensions?: number;
  input_type?: string;
  /** Fields that the public API does not have. */
  options?: Record<string, unknown>;
}

export interface VectorReading {
  vectors: number[][];
  tokens: number | undefined;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The request in the terms of the public API. */
export function readRequest({ provider, request }: Recording): RequestReading {
  const body = object(request?.body);
  const path = text(request?.path);
  const ofPath = /\/models\/([^:]+):/.exec(path)?.[1];
  const model = ofPath ?? text(body['model']);
  if (ofPath !== undefined) {
    const requests = array(body['requests']).map(object);
    const [first = {}] = requests;
    return {
      provider,
      model,
      texts: requests.map((one) => text(object(array(object(one['content'])['parts'])[0])['text'])),
      encoding_format: 'float',
      ...(first['outputDimensionality'] === undefined ? {} : { dimensions: Number(first['outputDimensionality']) }),
      ...(first['taskType'] === undefined ? {} : { input_type: text(first['taskType']) }),
    };
  }
  const dimensions = body['dimensions'] ?? body['output_dimension'];
  const rest = Object.entries(body).filter(
    ([name, value]) => value !== null && ['truncate', 'truncation'].includes(name),
  );
  return {
    provider,
    model,
    texts: array(body['texts'] ?? body['input']).map(text),
    encoding_format: body['encoding_format'] === 'base64' ? 'base64' : 'float',
    ...(dimensions == null ? {} : { dimensions: Number(dimensions) }),
    ...(body['input_type'] === undefined ? {} : { input_type: text(body['input_type']) }),
    ...(rest.length === 0 ? {} : { options: Object.fromEntries(rest) }),
  };
}

function floats(base64: string): number[] {
  const view = new DataView(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)).buffer);
  return Array.from({ length: view.byteLength / 4 }, (_, at) => view.getFloat32(at * 4, true));
}

function vector(value: unknown): number[] {
  return typeof value === 'string' ? floats(value) : (value as number[]);
}

/** The vectors and the token counts of a raw answer. */
export function readAnswer({ response }: Recording): VectorReading {
  const body = object(response.json);
  const usage = object(body['usage']);
  const tokens =
    usage['prompt_tokens'] ??
    usage['total_tokens'] ??
    object(object(body['meta'])['billed_units'])['input_tokens'] ??
    object(body['usageMetadata'])['promptTokenCount'];
  const listed = body['data'] ?? object(body['embeddings'])['float'] ?? body['embeddings'];
  return {
    vectors: array(listed).map((one) =>
      Array.isArray(one) ? vector(one) : vector(object(one)['embedding'] ?? object(one)['values']),
    ),
    tokens: tokens === undefined ? undefined : Number(tokens),
  };
}
