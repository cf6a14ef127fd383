import { limits } from '../../limits.ts';

/** Writes the events of one stream, each with its type and sequence number. */
export interface Events {
  /** Whether events are used. For a whole answer, only the items are. */
  readonly are_read: boolean;
  /** `fields` is JSON text of further members, each after a comma. */
  send(type: string, fields: string): void;
  /** The text of the events since the last call. */
  take(): string;
  /** The same, in a text of its own for each long event: joined, they would take as much memory again. */
  takeEach(): string | readonly string[];
}

/** Makes the events of a stream. Only `data:` lines, since each event contains its type. */
export function createEvents(): Events {
  let sequenceNumber = 0;
  let text = '';
  let texts: string[] = [];
  function takeEach(): string | readonly string[] {
    const taken = texts.length === 0 ? text : [...texts, text];
    text = '';
    texts = [];
    return taken;
  }
  return {
    are_read: true,
    send(type, fields) {
      const event = `data: {"type":"${type}","sequence_number":${sequenceNumber}${fields}}\n\n`;
      sequenceNumber += 1;
      if (text.length + event.length <= limits.json_long_chars_min) text += event;
      else {
        if (text !== '') texts.push(text);
        text = event;
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
