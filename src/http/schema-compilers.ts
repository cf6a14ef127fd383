import { serializerCompiler } from './serialization.ts';
import { validatorCompiler } from './validation.ts';

/** The gateway's schema compilers, as an option of the server: if they are set later, Fastify loads Ajv and others in vain. */
export const schemaCompilers = {
  compilersFactory: {
    // Fastify types them as Ajv's and fast-json-stringify's.
    buildValidator: () => validatorCompiler as never,
    buildSerializer: () => serializerCompiler as never,
  },
};
