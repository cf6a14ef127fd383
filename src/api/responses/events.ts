/** Writes the events of one stream, each with its type and the next sequence number. */
export interface Events {
  /** Whether anybody reads them: of an answer that is told whole only its items are of use. */
  readonly are_read: boolean;
  /** `fields` is JSON of the further members, each after a comma. */
  send(type: string, fields: string): void;
  /** The text of the events since it was last asked for. */
  take(): string;
}

/** Makes the events of a stream. Only `data:` lines: the type stands in each event. */
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

/** Events that nobody reads. */
export const NO_EVENTS: Events = { are_read: false, send: () => {}, take: () => '' };
