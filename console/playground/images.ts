/** Images of a prompt: read in the browser, kept in its memory as data URLs. */
import { signal } from '@preact/signals';
import { count } from '../format.ts';

/** Bounds of one prompt, and of a whole conversation: providers refuse larger images, and the gateway larger requests. */
const IMAGES_MAX = 8;
const IMAGE_BYTES_MAX = 5_000_000;
const CONVERSATION_BYTES_MAX = 20_000_000;

export interface Image {
  id: number;
  name: string;
  type: string;
  bytes: number;
  /** A data URL. */
  url: string;
}

let lastId = 0;

/** The types that models accept, by the first bytes of a file: its name and the type that the browser states may be wrong. */
const SIGNATURES: readonly (readonly [type: string, at: number, bytes: readonly number[]])[] = [
  ['image/png', 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ['image/jpeg', 0, [0xff, 0xd8, 0xff]],
  ['image/gif', 0, [0x47, 0x49, 0x46, 0x38]],
  ['image/webp', 8, [0x57, 0x45, 0x42, 0x50]],
];

async function typeOf(file: Blob): Promise<string | undefined> {
  const head = new Uint8Array(await file.slice(0, 12).arrayBuffer());
  return SIGNATURES.find(([, at, bytes]) => bytes.every((byte, index) => head[at + index] === byte))?.[0];
}

const urlOf = (file: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error ?? new Error('The file cannot be read.'));
    reader.readAsDataURL(file);
  });

export const megabytes = (bytes: number): string =>
  bytes < 1_000_000 ? `${count(Math.max(1, bytes / 1_000))} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;

/** Why files were left out, for the person. */
export const imageFaults = signal<string[]>([]);

/** Reads files for a prompt that has `present` images, in a conversation of `used` bytes. */
export async function readImages(files: readonly File[], present: readonly Image[], used: number): Promise<Image[]> {
  const read: Image[] = [];
  const refused: string[] = [];
  let bytes = used;
  for (const file of files) {
    const name = file.name === '' ? 'the pasted image' : file.name;
    if (present.length + read.length >= IMAGES_MAX) {
      refused.push(`${name}: a prompt has at most ${IMAGES_MAX} images. Remove one first.`);
    } else if (file.size > IMAGE_BYTES_MAX) {
      refused.push(
        `${name}: ${megabytes(file.size)}; an image has at most ${megabytes(IMAGE_BYTES_MAX)}. Make it smaller.`,
      );
    } else if (bytes + file.size > CONVERSATION_BYTES_MAX) {
      refused.push(
        `${name}: the images of a conversation have at most ${megabytes(CONVERSATION_BYTES_MAX)}. Begin a new one.`,
      );
    } else {
      const type = await typeOf(file).catch(() => undefined);
      if (type === undefined) {
        refused.push(`${name}: no PNG, JPEG, WebP or GIF image. Models accept only these.`);
        continue;
      }
      bytes += file.size;
      lastId += 1;
      read.push({ id: lastId, name, type, bytes: file.size, url: await urlOf(new Blob([file], { type })) });
    }
  }
  // For a drop of a thousand files, each reason is shown once, for the first of them.
  imageFaults.value =
    refused.length > 5 ? [...refused.slice(0, 5), `${refused.length - 5} more files are left out.`] : refused;
  return read;
}
