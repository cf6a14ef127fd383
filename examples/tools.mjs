// Lets a model call a function, with the OpenAI SDK.
// Run it:  npm install openai && GATEWAY_KEY=sk-gw-v1-… node examples/tools.mjs [model]
import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: `${process.env.GATEWAY_URL ?? 'http://127.0.0.1:8080'}/api/v1`,
  apiKey: process.env.GATEWAY_KEY,
});
const model = process.argv[2] ?? 'sandbox/tools';
const tools = [
  {
    type: 'function',
    function: {
      name: 'get_temperature',
      description: 'The temperature in a city, in degrees Celsius.',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
];
const messages = [{ role: 'user', content: 'How warm is it in Oslo?' }];

const first = await client.chat.completions.create({ model, messages, tools });
const { message } = first.choices[0];
messages.push(message);
for (const call of message.tool_calls ?? []) {
  process.stdout.write(`${call.function.name}(${call.function.arguments})\n`);
  messages.push({ role: 'tool', tool_call_id: call.id, content: '7' });
}
const second = await client.chat.completions.create({ model, messages, tools });
process.stdout.write(`${second.choices[0].message.content}\n`);
