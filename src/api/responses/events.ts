/** Writes the events of one stream, each with its type and sequence number. */
export interface Events {
  /** Whether events are used. For a whole answer, only the items are. */
  readonly are_read: boolean;
  /** `fields` is JSON text of further members, each after a comma. */
  send(type: string, fields: string): void;
  /** The text of the events since the last call. */
  take(): string;
}

/** Makes the events of a stream. Only `data:` lines, since each event contains its type. */
export function createEvents(): Events {
  let sequenceNumber = 0;
  let text = '';
  return {
    are_read: true,
    send(type, fields) {
      text += `data: {"type":"${type}","sequence_number":${sequenceNumber}${fields}}\n\n`;
      sequenceNumber += 1;
    },
    take() {
      const taken = text;
      text = '';
      return taken;
    },
  };
}

/** Discards events. */
export const NO_EVENTS: Events = { are_read: false, send: () => {}, take: () => '' };
