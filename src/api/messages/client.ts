import { WIRE } from '../../providers/anthropic-messages/wire.ts';
import type { ClientProfile } from '../../schemas/inner.ts';
import { createRunWriter } from './own-runs.ts';

/** The profile of clients of `POST /messages`. */
export const messagesClient: ClientProfile = {
  name: 'messages',
  ownWire: WIRE,
  returnsTurns: true,
  isSequential: true,
  hasPrompt: false,
  showsFiles: false,
  refusesUnknownChoice: true,
  repeatsProbabilities: false,
  createRunWriter,
};
