/** Ready settings and requests, for the person to copy. */

export interface Snippet {
  title: string;
  text: string;
}

const shell = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
const quoted = (value: unknown) => JSON.stringify(value);

/** The name of the variable in which examples keep the secret. */
const VARIABLE = 'GATEWAY_KEY';
/** A list or an object that is longer stands on lines of its own. */
const LINE_CHARS = 80;

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
    {
      title: 'OpenCode',
      text: `// In opencode.json; the secret is read from ${VARIABLE}.\n${JSON.stringify(
        {
          provider: {
            gateway: {
              npm: '@ai-sdk/openai-compatible',
              name: 'Model Gateway',
              options: { baseURL: `${origin}api/v1`, apiKey: `{env:${VARIABLE}}` },
              models: { MODEL: {} },
            },
          },
        },
        undefined,
        2,
      )}`,
    },
    {
      title: 'Aider',
      text: `export OPENAI_API_BASE=${origin}api/v1\nexport OPENAI_API_KEY=${inShell}\naider --model openai/MODEL`,
    },
  ];
}

/** A value as a literal of Python or TypeScript, on lines of its own; texts of `expressions` are written as those. */
function literal(value: unknown, isPython: boolean, expressions: ReadonlyMap<string, string>, indent: string): string {
  const inner = `${indent}    `;
  const write = (one: unknown) => literal(one, isPython, expressions, inner);
  if (typeof value === 'string') return expressions.get(value) ?? quoted(value);
  if (value === null) return isPython ? 'None' : 'null';
  if (typeof value === 'boolean') return isPython ? (value ? 'True' : 'False') : String(value);
  if (typeof value !== 'object') return quoted(value);
  const parts = Array.isArray(value)
    ? value.map(write)
    : Object.entries(value).map(([name, one]) => `${quoted(name)}: ${write(one)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const line = parts.join(', ');
  if (line.length <= LINE_CHARS && !line.includes('\n')) return `${open}${line}${close}`;
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join('')}${indent}${close}`;
}

/** The data URLs of images in a request, each once: code names files in place of them. */
function imagesOf(value: unknown, urls = new Map<string, string>()): Map<string, string> {
  if (typeof value === 'string') {
    const type = /^data:image\/(png|jpeg|webp|gif);base64,/.exec(value.slice(0, 40))?.[1];
    if (type !== undefined && !urls.has(value)) urls.set(value, `image-${urls.size + 1}.${type}`);
  } else if (typeof value === 'object' && value !== null) {
    for (const one of Object.values(value)) imagesOf(one, urls);
  }
  return urls;
}

/** A chat request as curl, Python and TypeScript. The key is read from the environment, and images from files. */
export function requests(
  origin: string,
  body: { model: string; messages: unknown[] } & Record<string, unknown>,
): Snippet[] {
  const { stream: _, ...fields } = body;
  const files = imagesOf(body.messages);
  const types = (file: string) => `image/${file.slice(file.lastIndexOf('.') + 1)}`;
  const expressions = (name: string) =>
    new Map([...files].map(([url, file]) => [url, `${name}(${quoted(file)}, ${quoted(types(file))})`]));
  const inShell = JSON.stringify(body, undefined, 2).replaceAll(/data:image\/[^"]*/g, (url) => {
    const file = files.get(url);
    return file === undefined ? url : `data:${types(file)};base64,BASE64_OF_${file}`;
  });
  const shown = body['tools'] === undefined ? 'message.content' : 'message';
  const python = expressions('data_url');
  const script = expressions('dataUrl');
  return [
    {
      title: 'curl',
      text: [
        ...[...files.values()].map((file) => `# In place of BASE64_OF_${file}: the output of base64 -w0 ${file}`),
        `curl -sN ${origin}api/v1/chat/completions \\`,
        '  -H "Authorization: Bearer $GATEWAY_KEY" \\',
        '  -H "Content-Type: application/json" \\',
        `  -d ${shell(inShell)}`,
      ].join('\n'),
    },
    {
      title: 'Python',
      text: [
        ...(files.size === 0 ? [] : ['import base64']),
        'import os',
        'from openai import OpenAI',
        '',
        ...(files.size === 0
          ? []
          : [
              'def data_url(path, media_type):',
              '    with open(path, "rb") as file:',
              '        return f"data:{media_type};base64,{base64.b64encode(file.read()).decode()}"',
              '',
            ]),
        `client = OpenAI(base_url="${origin}api/v1", api_key=os.environ["GATEWAY_KEY"])`,
        'answer = client.chat.completions.create(',
        ...Object.entries(fields).map(([name, value]) => `    ${name}=${literal(value, true, python, '    ')},`),
        ')',
        `print(answer.choices[0].${shown})`,
      ].join('\n'),
    },
    {
      title: 'TypeScript',
      text: [
        ...(files.size === 0 ? [] : ["import { readFileSync } from 'node:fs';"]),
        "import OpenAI from 'openai';",
        '',
        ...(files.size === 0
          ? []
          : [
              'const dataUrl = (path: string, mediaType: string) =>',
              `  \`data:\${mediaType};base64,\${readFileSync(path).toString('base64')}\`;`,
              '',
            ]),
        `const client = new OpenAI({ baseURL: '${origin}api/v1', apiKey: process.env.GATEWAY_KEY });`,
        'const answer = await client.chat.completions.create({',
        ...Object.entries(fields).map(([name, value]) => `  ${name}: ${literal(value, false, script, '  ')},`),
        '});',
        `console.log(answer.choices[0]?.${shown});`,
      ].join('\n'),
    },
  ];
}
