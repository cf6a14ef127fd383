import { serializerCompiler } from './serialization.ts';
import { validatorCompiler } from './validation.ts';

/** Our compilers of schemas, as Fastify takes them when a server is made: where it is told later it loads Ajv and its like for nothing. */
export const schema_compilers = {
  compilersFactory: {
    // Typed as Ajv's and fast-json-stringify's.
    buildValidator: () => validatorCompiler as never,
    buildSerializer: () => serializerCompiler as never,
  },
};
