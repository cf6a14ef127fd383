/** Ready settings and requests, for the person to copy. */

export interface Snippet {
  title: string;
  text: string;
}

const shell = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
const quoted = (value: unknown) => JSON.stringify(value);

/** How SDKs and agents are told about this gateway. `key` is the secret. */
export function settings(origin: string, key: string): Snippet[] {
  return [
    { title: 'Environment', text: `export OPENAI_BASE_URL=${origin}api/v1\nexport OPENAI_API_KEY=${key}` },
    {
      title: 'Python',
      text: `from openai import OpenAI\n\nclient = OpenAI(\n    base_url="${origin}api/v1",\n    api_key="${key}",\n)`,
    },
    {
      title: 'TypeScript',
      text: `import OpenAI from 'openai';\n\nconst client = new OpenAI({\n  baseURL: '${origin}api/v1',\n  apiKey: '${key}',\n});`,
    },
    {
      title: 'Claude Code',
      text: `export ANTHROPIC_BASE_URL=${origin.replace(/\/$/, '')}/api\nexport ANTHROPIC_AUTH_TOKEN=${key}`,
    },
  ];
}

/** A chat request as curl, Python and TypeScript. The key is read from the environment. */
export function requests(
  origin: string,
  body: { model: string; messages: unknown[] } & Record<string, unknown>,
): Snippet[] {
  const { model, messages, ...rest } = body;
  const lines = Object.entries(rest).filter(([name]) => name !== 'stream');
  const py = (value: unknown) =>
    quoted(value)
      .replace(/\btrue\b/g, 'True')
      .replace(/\bfalse\b/g, 'False');
  return [
    {
      title: 'curl',
      text: [
        `curl -sN ${origin}api/v1/chat/completions \\`,
        '  -H "Authorization: Bearer $GATEWAY_KEY" \\',
        '  -H "Content-Type: application/json" \\',
        `  -d ${shell(quoted(body))}`,
      ].join('\n'),
    },
    {
      title: 'Python',
      text: [
        'import os',
        'from openai import OpenAI',
        '',
        `client = OpenAI(base_url="${origin}api/v1", api_key=os.environ["GATEWAY_KEY"])`,
        'answer = client.chat.completions.create(',
        `    model=${quoted(model)},`,
        `    messages=${quoted(messages)},`,
        ...lines.map(([name, value]) => `    ${name}=${py(value)},`),
        ')',
        'print(answer.choices[0].message.content)',
      ].join('\n'),
    },
    {
      title: 'TypeScript',
      text: [
        "import OpenAI from 'openai';",
        '',
        `const client = new OpenAI({ baseURL: '${origin}api/v1', apiKey: process.env.GATEWAY_KEY });`,
        'const answer = await client.chat.completions.create({',
        `  model: ${quoted(model)},`,
        `  messages: ${quoted(messages)},`,
        ...lines.map(([name, value]) => `  ${name}: ${quoted(value)},`),
        '});',
        'console.log(answer.choices[0]?.message.content);',
      ].join('\n'),
    },
  ];
}
