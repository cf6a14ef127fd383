/** A data URL (RFC 2397) with its content as base64, and JPEG under its registered name; undefined for any other URL. */
export function readDataUrl(url: string): { media_type: string; base64: string } | undefined {
  if (url.slice(0, 5).toLowerCase() !== 'data:') return undefined;
  const comma = url.indexOf(',');
  if (comma === -1) return undefined;
  const head = url.slice(5, comma);
  // Not split into parameters: a client may send millions of them.
  const semicolon = head.indexOf(';');
  const type = (semicolon === -1 ? head : head.slice(0, semicolon)).toLowerCase();
  const content = url.slice(comma + 1);
  const isBase64 = /;\s*base64\s*(?:;|$)/i.test(head);
  return {
    media_type: registered(type.trim() || 'text/plain'),
    base64: isBase64 ? content : Buffer.from(decodePercent(content), 'utf8').toString('base64'),
  };
}

/** Clients derive a type from a file's extension; Gemini refuses `image/jpg`. */
function registered(type: string): string {
  return type === 'image/jpg' ? 'image/jpeg' : type;
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
