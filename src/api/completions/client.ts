import type { ClientProfile } from '../../schemas/inner.ts';

/** The profile of clients that send a `prompt`: of `POST /completions`, and of `POST /chat/completions` in its legacy form. */
export const completionsClient: ClientProfile = {
  name: 'completions',
  ownWire: undefined,
  returnsTurns: false,
  isSequential: false,
  hasPrompt: true,
  showsFiles: false,
  refusesUnknownChoice: false,
  repeatsProbabilities: false,
  createRunWriter: undefined,
};
