import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '..');

export interface Document {
  /** Its path from the root, with forward slashes. */
  file: string;
  text: string;
}

function read(file: string): Document {
  return { file, text: readFileSync(join(root, file), 'utf8') };
}

/** Every Markdown file of the tree, in the order of their names. */
export function allDocuments(): Document[] {
  const files = globSync('**/*.md', { cwd: root, exclude: (name) => /(^|[\\/])(node_modules|\.git)$/.test(name) });
  return files
    .map((file) => file.replaceAll('\\', '/'))
    .sort()
    .map(read);
}

/** What users read: the README first, and then the guides. */
export function userDocuments(): Document[] {
  const guides = allDocuments().filter(({ file }) => file.startsWith('docs/guides/'));
  return [read('README.md'), ...guides];
}

/** The contents of the fenced blocks of a language, in order. */
export function blocksOf(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block = '']) => block);
}
