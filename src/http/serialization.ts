import { createRequire } from 'node:module';
import type { Schema } from 'fast-json-stringify';
import type { FastifySerializerCompiler } from 'fastify';

const load = createRequire(import.meta.url);
/** Loaded with the first answer: it brings Ajv, and an idle gateway writes none. */
const fastJson = () => load('fast-json-stringify') as typeof import('fast-json-stringify').default;

type Write = (answer: unknown) => string;

/** By schema: routes share those of errors. */
const writers = new WeakMap<object, Write>();

/**
 * Fastify's serializer: what the schema does not name is left out. Compiled when the first answer is written: a hundred
 * routes with all their statuses took 17 MB and a tenth of a second at every start, for answers that most never give.
 */
export const serializerCompiler: FastifySerializerCompiler<Schema> = ({ schema }) => {
  return (answer) => {
    let write = writers.get(schema as object);
    if (write === undefined) {
      write = fastJson()(schema) as Write;
      writers.set(schema as object, write);
    }
    return write(answer);
  };
};
