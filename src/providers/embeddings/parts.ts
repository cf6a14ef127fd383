import { GatewayError } from '../../errors.ts';
import type { Media, MediaNeed } from '../dialect.ts';
import { readDataUrl } from '../shared/data-url.ts';
import type { EmbeddingInput } from './dialect.ts';

/** The texts of inputs, on a wire that takes nothing else. Throws a 400. */
export function textsOnly(inputs: readonly EmbeddingInput[]): string[] {
  return inputs.map((input) => {
    if (typeof input === 'string') return input;
    requireNoTokens(input);
    throw new GatewayError(400, 'This endpoint does not take images');
  });
}

/** Whether an input is tokens. */
export function isTokens(input: EmbeddingInput): input is number[] {
  return typeof input !== 'string' && typeof input[0] === 'number';
}

/** Throws a 400 for an input of tokens, on a wire that takes none. */
export function requireNoTokens(input: EmbeddingInput): asserts input is Exclude<EmbeddingInput, number[]> {
  if (isTokens(input)) throw new GatewayError(400, 'This endpoint does not take inputs of tokens');
}

/** What must be fetched for a wire that takes bytes alone. */
export function imagesToFetch(inputs: readonly EmbeddingInput[]): MediaNeed[] {
  return inputs.flatMap((input) => {
    if (typeof input === 'string' || isTokens(input)) return [];
    return input.flatMap((part): MediaNeed[] =>
      part.type === 'image_url' && readDataUrl(part.image_url.url) === undefined
        ? [{ url: part.image_url.url, kind: 'image' }]
        : [],
    );
  });
}

/** Inputs with what was fetched in place of its address. */
export function inlineImages(inputs: readonly EmbeddingInput[], media: Media): EmbeddingInput[] {
  return inputs.map((input) => {
    if (typeof input === 'string' || isTokens(input)) return input;
    return input.map((part) => {
      const found = part.type === 'image_url' ? media.get(part.image_url.url) : undefined;
      if (found === undefined) return part;
      return { type: 'image_url' as const, image_url: { url: `data:${found.mime_type};base64,${found.base64}` } };
    });
  });
}

/** An image's type and base64, on a wire that takes bytes alone. Throws a 400. */
export function imageBytes(url: string, media: Media): { media_type: string; base64: string } {
  const read = readDataUrl(url);
  if (read !== undefined) return read;
  const fetched = media.get(url);
  if (fetched === undefined) throw new GatewayError(400, 'This endpoint takes images as bytes only');
  return { media_type: fetched.mime_type, base64: fetched.base64 };
}
