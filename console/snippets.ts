/** Ready settings and requests, for the person to copy. */

export interface Snippet {
  title: string;
  text: string;
}

const shell = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
const quoted = (value: unknown) => JSON.stringify(value);

/** The name of the variable in which examples keep the secret. */
const VARIABLE = 'GATEWAY_KEY';

/** Settings of SDKs and agents for this gateway: with the secret itself, or with the variable that holds it. */
export function settings(origin: string, key: string | undefined): Snippet[] {
  const inShell = key ?? `$${VARIABLE}`;
  const inPython = key === undefined ? `os.environ["${VARIABLE}"]` : `"${key}"`;
  const inScript = key === undefined ? `process.env.${VARIABLE}` : `'${key}'`;
  // Clients of the Messages API add `/v1` themselves.
  const messages = `${origin.replace(/\/$/, '')}/api`;
  return [
    { title: 'Environment', text: `export OPENAI_BASE_URL=${origin}api/v1\nexport OPENAI_API_KEY=${inShell}` },
    {
      title: 'Python',
      text: `${key === undefined ? 'import os\n' : ''}from openai import OpenAI\n\nclient = OpenAI(\n    base_url="${origin}api/v1",\n    api_key=${inPython},\n)`,
    },
    {
      title: 'TypeScript',
      text: `import OpenAI from 'openai';\n\nconst client = new OpenAI({\n  baseURL: '${origin}api/v1',\n  apiKey: ${inScript},\n});`,
    },
    {
      title: 'Anthropic SDK',
      text: `${key === undefined ? 'import os\n' : ''}from anthropic import Anthropic\n\nclient = Anthropic(\n    base_url="${messages}",\n    api_key=${inPython},\n)`,
    },
    {
      title: 'Vercel AI SDK',
      text: `import { createOpenAI } from '@ai-sdk/openai';\n\nconst openai = createOpenAI({\n  baseURL: '${origin}api/v1',\n  apiKey: ${inScript},\n});\nconst model = openai.chat('MODEL');`,
    },
    {
      title: 'LangChain',
      text: `${key === undefined ? 'import os\n' : ''}from langchain_openai import ChatOpenAI\n\nmodel = ChatOpenAI(\n    model="MODEL",\n    base_url="${origin}api/v1",\n    api_key=${inPython},\n)`,
    },
    {
      title: 'Codex',
      text: `# In ~/.codex/config.toml; the secret is read from ${VARIABLE}.\nmodel = "MODEL"\nmodel_provider = "gateway"\n\n[model_providers.gateway]\nname = "Model Gateway"\nbase_url = "${origin}api/v1"\nenv_key = "${VARIABLE}"\nwire_api = "responses"`,
    },
    {
      title: 'Claude Code',
      text: `export ANTHROPIC_BASE_URL=${messages}\nexport ANTHROPIC_AUTH_TOKEN=${inShell}`,
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
