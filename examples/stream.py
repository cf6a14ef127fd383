"""Streams an answer with the OpenAI SDK and prints its cost.

Run it:  pip install openai && GATEWAY_KEY=sk-gw-v1-... python examples/stream.py [model]
"""

import os
import sys

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080") + "/api/v1",
    api_key=os.environ["GATEWAY_KEY"],
)
stream = client.chat.completions.create(
    model=sys.argv[1] if len(sys.argv) > 1 else "sandbox/story",
    messages=[{"role": "user", "content": "Tell me a story."}],
    stream=True,
    stream_options={"include_usage": True},
)
for chunk in stream:
    if chunk.choices and chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content, end="", flush=True)
    if chunk.usage:
        print(f"\ncost: {chunk.usage.model_extra['cost']} USD")
