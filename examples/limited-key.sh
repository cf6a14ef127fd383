#!/usr/bin/env bash
# Makes a key that may spend 5 USD a month, asks a model with it, and prints what the request cost and what is left.
# Run it:  MANAGEMENT_KEY=sk-gw-v1-… examples/limited-key.sh [model]
set -euo pipefail
gateway=${GATEWAY_URL:-http://127.0.0.1:8080}
model=${1:-sandbox/story}
field() { node -pe "JSON.parse(require('fs').readFileSync(0, 'utf8'))$1"; }

key=$(curl -sS --fail-with-body "$gateway/api/v1/keys" \
  -H "Authorization: Bearer ${MANAGEMENT_KEY:?set it to a management key}" -H 'Content-Type: application/json' \
  -d '{"name": "limited", "limit": 5, "limit_reset": "monthly"}' | field .key)

answer=$(curl -sS --fail-with-body "$gateway/api/v1/chat/completions" \
  -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
  -d "{\"model\": \"$model\", \"messages\": [{\"role\": \"user\", \"content\": \"Tell me a story.\"}]}")
echo "$answer" | field .choices[0].message.content
echo "cost: $(echo "$answer" | field .usage.cost) USD"
echo "left: $(curl -sS --fail-with-body "$gateway/api/v1/key" -H "Authorization: Bearer $key" | field .data.limit_remaining) USD"
