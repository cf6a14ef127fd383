import type { ClientProfile } from '../../schemas/inner.ts';

/** The profile of clients of `POST /chat/completions`. */
export const chatClient: ClientProfile = {
  name: 'chat',
  ownWire: undefined,
  returnsTurns: true,
  isSequential: false,
  hasPrompt: false,
  showsFiles: true,
  refusesUnknownChoice: false,
  repeatsProbabilities: false,
  createRunWriter: undefined,
};
