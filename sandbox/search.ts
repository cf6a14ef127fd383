const found_by_default = ['sandbox.example.com', 'sandbox.example.org', 'sandbox.example.net'];

const results_max = 25;

/** The query without the operators of search engines, and the sites that these name. */
function readQuery(query: string): { words: string; wanted: string[]; unwanted: string[] } {
  const wanted: string[] = [];
  const unwanted: string[] = [];
  const words: string[] = [];
  for (const word of query.split(/\s+/)) {
    if (word.startsWith('site:')) wanted.push(word.slice(5));
    else if (word.startsWith('-site:')) unwanted.push(word.slice(6));
    else if (word !== 'OR' && word !== '') words.push(word);
  }
  return { words: words.join(' '), wanted, unwanted };
}

/**
 * An answer of SearXNG in its format `json` (https://docs.searxng.org/dev/search_api.html). The pages do not exist. They are the same for
 * the same query, at the sites that `site:` names, or at reserved names (RFC 2606).
 */
export function searchAnswer(query: string): object {
  const { words, wanted, unwanted } = readQuery(query);
  const places = wanted.length > 0 ? wanted : found_by_default;
  const path = encodeURIComponent(words.toLowerCase().slice(0, 60).replaceAll(/\s+/g, '-').toWellFormed());
  const pages = Array.from({ length: results_max }, (_, at) => ({
    url: `https://${places[at % places.length]}/${path}/${at + 1}`,
    title: `Page ${at + 1} about ${words.slice(0, 100).toWellFormed()}`,
    content: `The sandbox made this page up: nothing was searched for. It was asked for "${words.toWellFormed()}".`,
    engine: 'sandbox',
    publishedDate: null,
  }));
  const results = pages.filter(({ url }) => !unwanted.some((place) => isAt(url, place)));
  return { query, number_of_results: results.length, results, answers: [], suggestions: [], unresponsive_engines: [] };
}

function isAt(url: string, place: string): boolean {
  const host = URL.parse(url)?.host ?? '';
  const named = place.split('/', 1)[0]!;
  return host === named || host.endsWith(`.${named}`);
}
