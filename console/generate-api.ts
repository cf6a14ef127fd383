/** Makes `api.gen.ts` from `openapi.json`: the types of the operations that the console calls. */
interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  allOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
}
interface Operation {
  operationId: string;
  parameters?: { name: string; in: string; required?: boolean; schema: Schema }[];
  requestBody?: { content: { 'application/json'?: { schema: Schema } } };
  responses: Record<string, { content?: { 'application/json'?: { schema: Schema } } }>;
}
export interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

const OPERATIONS = [
  'getSession',
  'endSession',
  'getCredits',
  'listActivity',
  'getAnalyticsMeta',
  'queryAnalytics',
  'listAudit',
  'listGenerations',
  'listGenerationSessions',
  'getGeneration',
  'getGenerationContent',
  'listProviders',
  'listModels',
  'listModelEndpoints',
  'listKeys',
  'createKey',
  'updateKey',
  'rotateKey',
  'deletePreviousSecret',
  'deleteKey',
  'listOrganizationMembers',
  'deleteOrganizationMember',
  'listWorkspaces',
  'createWorkspace',
  'listWorkspaceMembers',
  'addWorkspaceMembers',
  'removeWorkspaceMembers',
  'getWorkspace',
  'deleteWorkspace',
  'putWorkspaceBudget',
  'deleteWorkspaceBudget',
  'getKey',
  'getKeyPolicy',
  'explainKeyRoute',
  'listBudgets',
  'updateWorkspace',
  'listGuardrails',
  'createGuardrail',
  'getGuardrail',
  'updateGuardrail',
  'deleteGuardrail',
  'testGuardrail',
  'listGuardrailKeys',
  'listGuardrailMembers',
  'listKeyAssignments',
  'listMemberAssignments',
  'assignGuardrailKeys',
  'assignGuardrailMembers',
  'unassignGuardrailKeys',
  'unassignGuardrailMembers',
  'getSetup',
  'getSystem',
  'getLedgerStatus',
  'releaseLedger',
  'resolveLedger',
  'verifyLedger',
  'listProviderCredentials',
  'testProviderCredential',
  'listByok',
  'createByok',
  'updateByok',
  'deleteByok',
  'testByok',
  'listEndpointHealth',
  'listFailingEndpoints',
  'listEndpointPrices',
];

/** The text of `api.gen.ts` for this document. */
export function apiTypes(document: Document): string {
  const used = new Set<string>();
  const typeOf = (schema: Schema): string => {
    if (schema.$ref !== undefined) {
      const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
      used.add(name);
      return name;
    }
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
    if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(' | ');
    if (schema.allOf) return schema.allOf.map(typeOf).join(' & ');
    if (schema.type === 'array') return `(${typeOf(schema.items ?? {})})[]`;
    if (schema.type === 'integer' || schema.type === 'number') return 'number';
    if (schema.type === 'string' || schema.type === 'boolean' || schema.type === 'null') return schema.type;
    if (schema.properties === undefined) return schema.type === 'object' ? 'Record<string, unknown>' : 'unknown';
    return fields(schema);
  };
  const fields = ({ properties = {}, required = [] }: Schema): string => {
    const lines = Object.entries(properties).map(
      ([name, schema]) => `${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(schema)};`,
    );
    return lines.length === 0 ? 'Record<string, never>' : `{ ${lines.join(' ')} }`;
  };
  const operations: string[] = [];
  const routes: string[] = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const { operationId, parameters = [], requestBody, responses } = operation;
      if (!OPERATIONS.includes(operationId)) continue;
      const of = (place: string): Schema => {
        const named = parameters.filter((one) => one.in === place);
        const required = named.filter((one) => one.required === true).map(({ name }) => name);
        return { properties: Object.fromEntries(named.map(({ name, schema }) => [name, schema])), required };
      };
      const body = requestBody?.content['application/json']?.schema;
      const answer = (responses['200'] ?? responses['201'])?.content?.['application/json']?.schema ?? {};
      const parts = [
        `path: ${fields(of('path'))};`,
        `query: ${fields(of('query'))};`,
        `body: ${body === undefined ? 'undefined' : typeOf(body)};`,
        `answer: ${typeOf(answer)};`,
      ];
      operations.push(`  ${operationId}: { ${parts.join(' ')} };`);
      routes.push(`  ${operationId}: ['${method.toUpperCase()}', '${path.slice(1)}'],`);
    }
  }
  const missing = OPERATIONS.filter((name) => !operations.some((line) => line.startsWith(`  ${name}:`)));
  if (missing.length > 0) throw new Error(`openapi.json has no operation ${missing.join(', ')}`);
  const schemas: string[] = [];
  const written = new Set<string>();
  while (written.size < used.size) {
    for (const name of used) {
      if (written.has(name)) continue;
      written.add(name);
      schemas.push(`export type ${name} = ${typeOf(document.components.schemas[name] ?? {})};`);
    }
  }
  return [
    '// Written by console/generate-api.ts from openapi.json (`npm run generate`).',
    ...schemas.sort(),
    `export interface Operations {\n${operations.join('\n')}\n}`,
    `export const routes: Readonly<Record<keyof Operations, readonly [method: string, path: string]>> = {\n${routes.join('\n')}\n};`,
    '',
  ].join('\n\n');
}
