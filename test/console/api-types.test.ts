import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { apiTypes, type Document } from '../../console/generate-api.ts';

test('the types of the console’s operations are those of openapi.json (`npm run generate` writes them)', async () => {
  const document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as Document;
  await expect(apiTypes(document)).toMatchFileSnapshot('../../console/api.gen.ts');
});
