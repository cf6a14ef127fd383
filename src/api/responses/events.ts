import { limits } from '../../limits.ts';

/** Writes the events of one stream, each with its type and sequence number. */
export interface Events {
  /** Whether events are used. For a whole answer, only the items are. */
  readonly are_read: boolean;
  /** `fields` is JSON text of further members, each after a comma; in pieces if it may be long. */
  send(type: string, fields: string | readonly string[]): void;
  /** The text of the events since the last call, which are short. */
  take(): string;
  /** The same, in several texts if it is long: long pieces are not joined, which would take as much memory again. */
  takeEach(): string | readonly string[];
}

/** Makes the events of a stream. Only `data:` lines, since each event contains its type. */
export function createEvents(): Events {
  let sequenceNumber = 0;
  let text = '';
  let texts: string[] = [];
  function add(piece: string): void {
    if (piece.length < limits.json_piece_chars && text.length + piece.length <= limits.json_long_chars_min)
      text += piece;
    else {
      if (text !== '') texts.push(text);
      text = piece;
    }
  }
  function takeEach(): string | readonly string[] {
    const taken = texts.length === 0 ? text : [...texts, text];
    text = '';
    texts = [];
    return taken;
  }
  return {
    are_read: true,
    send(type, fields) {
      const head = `data: {"type":"${type}","sequence_number":${sequenceNumber}`;
      sequenceNumber += 1;
      if (typeof fields === 'string') add(`${head}${fields}}\n\n`);
      else {
        add(head);
        for (const piece of fields) add(piece);
        add('}\n\n');
      }
    },
    take() {
      const taken = takeEach();
      return typeof taken === 'string' ? taken : taken.join('');
    },
    takeEach,
  };
}

/** Discards events. */
export const NO_EVENTS: Events = { are_read: false, send: () => {}, take: () => '', takeEach: () => '' };
