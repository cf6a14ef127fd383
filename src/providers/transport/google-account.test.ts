import { describe, expect, test } from 'vitest';
import { readGoogleAccount, vertexAddress } from './google-account.ts';

const service = {
  type: 'service_account',
  client_email: 'a@b',
  private_key: 'k',
  private_key_id: 'i',
  project_id: 'own',
};
const user = {
  type: 'authorized_user',
  client_id: 'c',
  client_secret: 's',
  refresh_token: 'r',
  quota_project_id: 'mine',
};

describe('an account is read', () => {
  test('from the key of a service account, and from the file that gcloud writes for a user', () => {
    expect(readGoogleAccount(JSON.stringify(service))).toMatchObject({ kind: 'service', email: 'a@b', project: 'own' });
    expect(readGoogleAccount(JSON.stringify({ ...user, region: 'us-east5' }))).toMatchObject({
      kind: 'user',
      project: 'mine',
      location: 'us-east5',
    });
  });

  test.each(['AIza-key', '{', '{}', '[]', '{"client_email":"a@b"}', '{"type":"external_account"}'])(
    'from no other text: %s',
    (text) => {
      expect(readGoogleAccount(text)).toBeUndefined();
    },
  );
});

describe('the address of Vertex AI', () => {
  const base = (location: string, project = 'p') =>
    `https://aiplatform.googleapis.com/v1beta1/projects/${project}/locations/${location}/publishers/google`;

  test.each([
    ['global', 'https://aiplatform.googleapis.com/'],
    ['europe-west4', 'https://europe-west4-aiplatform.googleapis.com/'],
    ['eu', 'https://aiplatform.eu.rep.googleapis.com/'],
  ])('%s has a host of its own', (location, host) => {
    expect(vertexAddress(base(location), undefined, 'google')).toBe(
      base(location).replace('https://aiplatform.googleapis.com/', host),
    );
  });

  test("follows the account's project and location, and the publisher of the model", () => {
    const credential = JSON.stringify({ ...service, location: 'us-east5' });
    expect(vertexAddress(base('global', '-'), credential, 'anthropic')).toBe(
      'https://us-east5-aiplatform.googleapis.com/v1beta1/projects/own/locations/us-east5/publishers/anthropic',
    );
  });

  test('contains no project for a plain key without one', () => {
    expect(vertexAddress(base('global', '-'), 'AIza', 'google')).toBe(
      'https://aiplatform.googleapis.com/v1beta1/publishers/google',
    );
  });

  test.each(['../../evil', 'a/b', 'evil.example/', 'A b', 'x'.repeat(200)])(
    'ignores a project or location with invalid characters: %s',
    (name) => {
      const credential = JSON.stringify({ ...service, project_id: name, location: name });
      expect(vertexAddress(base('global'), credential, 'google')).toBe(base('global'));
    },
  );

  test.each(['evil.example:8080', 'evil.example', 'a:b'])(
    'ignores a location of more than one label: %s',
    (location) => {
      const credential = JSON.stringify({ ...service, location });
      expect(vertexAddress(base('global'), credential, 'google')).toBe(base('global', 'own'));
    },
  );

  test("is changed in project, location and publisher alone if the host is not Google's", () => {
    const own = 'http://127.0.0.1:9/v1/projects/p/locations/us-east5/publishers/google';
    expect(vertexAddress(own, undefined, 'google')).toBe(own);
    expect(vertexAddress('https://api.anthropic.com/v1', JSON.stringify(service), 'anthropic')).toBe(
      'https://api.anthropic.com/v1',
    );
  });
});
