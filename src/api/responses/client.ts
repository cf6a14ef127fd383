import { WIRE } from '../../providers/openai-responses/wire.ts';
import type { ClientProfile } from '../../schemas/inner.ts';
import { createRunWriter } from './own-runs.ts';

/** The profile of clients of `POST /responses`. */
export const responsesClient: ClientProfile = {
  name: 'responses',
  ownWire: WIRE,
  returnsTurns: true,
  isSequential: true,
  hasPrompt: false,
  showsFiles: false,
  refusesUnknownChoice: false,
  repeatsProbabilities: true,
  createRunWriter,
};
