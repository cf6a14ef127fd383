import { GatewayError } from '../../errors.ts';
import type { Media, MediaNeed } from '../dialect.ts';
import { readDataUrl } from '../shared/data-url.ts';
import type { EmbeddingInput } from './dialect.ts';

/** The texts of inputs, for a wire that accepts nothing else. Throws `GatewayError` 400. */
export function textsOnly(inputs: readonly EmbeddingInput[]): string[] {
  return inputs.map((input) => {
    if (typeof input === 'string') return input;
    requireNoTokens(input);
    throw new GatewayError(400, 'This endpoint does not accept images');
  });
}

/** Whether an input is a list of tokens. */
export function isTokens(input: EmbeddingInput): input is number[] {
  return typeof input !== 'string' && typeof input[0] === 'number';
}

/** Throws `GatewayError` 400 for an input of tokens, for a wire that does not accept them. */
export function requireNoTokens(input: EmbeddingInput): asserts input is Exclude<EmbeddingInput, number[]> {
  if (isTokens(input)) throw new GatewayError(400, 'This endpoint does not accept token inputs: send text');
}

/** The images that must be fetched for a wire that accepts bytes only. */
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

/** The inputs with fetched images as data URLs. */
export function inlineImages(inputs: readonly EmbeddingInput[], media: Media): EmbeddingInput[] {
  return inputs.map((input) => {
    if (typeof input === 'string' || isTokens(input)) return input;
    return input.map((part) => {
      const file = part.type === 'image_url' ? media.get(part.image_url.url) : undefined;
      if (file === undefined) return part;
      return { type: 'image_url' as const, image_url: { url: `data:${file.mime_type};base64,${file.base64}` } };
    });
  });
}

/** An image's type and base64, for a wire that accepts bytes only. Throws `GatewayError` 400. */
export function imageBytes(url: string, media: Media): { media_type: string; base64: string } {
  const read = readDataUrl(url);
  if (read !== undefined) return read;
  const fetched = media.get(url);
  if (fetched === undefined) throw new GatewayError(400, 'This endpoint accepts images as bytes only: send a data URL');
  return { media_type: fetched.mime_type, base64: fetched.base64 };
}
