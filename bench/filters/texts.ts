import { card, chance } from '../../test/filters/corpus.ts';

/** One kind of message, of about 100 KB. */
export interface Message {
  name: string;
  text: string;
}

const BYTES = 100_000;

function filledUp(next: () => string): string {
  const parts: string[] = [];
  for (let bytes = 0; bytes < BYTES; ) {
    const part = next();
    parts.push(part);
    bytes += Buffer.byteLength(part);
  }
  return parts.join('');
}

const PROSE =
  'the quick brown fox jumps over a lazy dog while people of every age and trade read letters, write answers (often late) and go home; “nothing is lost”, she said — not even time. In 2024 it was 3:45 pm.'.split(
    ' ',
  );
const CJK =
  '今日は天気がいいので、散歩に行きました。（写真は後で送ります。）価格は１２００円です。数据库连接失败，请稍后重试：错误代码';

/** Kinds of messages that clients send, and those that are hardest for detectors. */
export function messages(seed: number): Message[] {
  const { below, one, digits } = chance(seed);
  const random = chance(seed);
  const line = () => {
    const time = `2024-05-${10 + below(18)}T${10 + below(13)}:${10 + below(49)}:${10 + below(49)}.${digits(3)}Z`;
    return `${time} ${digits(5)} INFO req=${digits(12)} took ${below(900)} ms, ${digits(6)} bytes, status 200, retry ${below(3)}/5\n`;
  };
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  return [
    { name: 'prose', text: filledUp(() => `${one(PROSE)} `) },
    {
      name: 'code',
      text: filledUp(
        () =>
          `export function handle${below(99)}(request: Request, index = ${below(9)}): Response {\n  const value = std::max(items[index]?.size ?? 0, 16);\n  return json({ ok: true, value, at: '12:30' }); // see @types/node\n}\n\n`,
      ),
    },
    {
      name: 'JSON',
      text: filledUp(
        () =>
          `{"id":${digits(8)},"name":"item ${below(99)}","price":${below(99)}.${digits(2)},"tags":["a","b"],"created":"2024-05-1${below(9)}T10:00:0${below(9)}Z","active":true},`,
      ),
    },
    { name: 'logs full of digits', text: filledUp(line) },
    {
      name: 'access log with addresses',
      text: filledUp(() => `${below(256)}.${below(256)}.${below(256)}.${below(256)} - - ${line()}`),
    },
    { name: 'base64', text: filledUp(() => `${Array.from({ length: 76 }, () => one([...alphabet])).join('')}\n`) },
    { name: 'CJK', text: filledUp(() => CJK) },
    { name: 'table of numbers', text: filledUp(() => `${digits(1 + below(6))} `) },
    { name: 'cards, one after another', text: filledUp(() => `${card(random)} `) },
    { name: 'mail, one after another', text: filledUp(() => `user${below(9_999)}@mail${below(99)}.example.com, `) },
    { name: 'telephones, one after another', text: filledUp(() => `+1 415 555 0${digits(3)}, `) },
    { name: 'colons', text: filledUp(() => one(['::', 'a:b', '1:2', ':'])) },
  ];
}
