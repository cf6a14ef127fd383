/** The page at `/` without the console: links, and how to build the console if it should be there. */
export function frontPage(isConsoleMissing: boolean): string {
  const missing = `<p>The console is not built. To build it, run <code>npm ci</code> in this clone with development dependencies
(without <code>--omit=dev</code>), then start the gateway again.</p>
`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Model Gateway</title>
<style>
  :root { color-scheme: light dark }
  body { font: 16px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 15vh auto 0; padding: 0 1.5rem }
  h1 { font-size: 1.6rem; margin-bottom: .3rem }
  li { margin: .3rem 0 }
  code { font-size: .95em }
</style>
<h1>Model Gateway</h1>
<p>The gateway is running. Point an OpenAI SDK at <code>/api/v1</code> with an API key.</p>
${isConsoleMissing ? missing : ''}<ul>
  <li><a href="docs">API reference</a></li>
  <li><a href="api/v1/openapi.json">OpenAPI document</a></li>
  <li><a href="api/v1/models">Models</a></li>
  <li><a href="health/ready">Readiness</a> and <a href="metrics">metrics</a></li>
</ul>
</html>
`;
}
