import { hash } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Schema } from 'fast-json-stringify';
import type { FastifySerializerCompiler } from 'fastify';

const load = createRequire(import.meta.url);
/** Loaded with the first answer: it brings Ajv, and an idle gateway writes none. */
const fastJson = () => load('fast-json-stringify') as typeof import('fast-json-stringify').default;

type Write = (answer: unknown) => string;

/** By the digest of the schema: routes share those of errors and of records, and the servers of a process all of them. */
const writers = new Map<string, Write>();

/**
 * Fastify's serializer: what the schema does not name is left out. Compiled when the first answer is written: a hundred
 * routes with all their statuses took 17 MB and a tenth of a second at every start, for answers that most never give.
 */
export const serializerCompiler: FastifySerializerCompiler<Schema> = ({ schema }) => {
  let write: Write | undefined;
  return (answer) => {
    write ??= writerOf(schema);
    return write(answer);
  };
};

function writerOf(schema: Schema): Write {
  const digest = hash('sha256', JSON.stringify(schema), 'base64');
  let write = writers.get(digest);
  if (write === undefined) {
    write = fastJson()(schema) as Write;
    writers.set(digest, write);
  }
  return write;
}
