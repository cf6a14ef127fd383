import type { Analyzer } from '../../guardrails/entities/analyzer.ts';
import type { Services } from '../../providers/transport/services.ts';
import type { PresidioSettings } from '../../schemas/presidio.ts';
import { createNameAnalyzer } from './name-analyzer.ts';
import { createPresidioAnalyzer } from './presidio-analyzer.ts';

/** The operator's analyzer where there is one, else the gateway's own. Asks for the settings each time, so that a reload takes effect at once. */
export function createAnalyzer(
  services: Pick<Services, 'ask'>,
  settings: () => PresidioSettings | undefined,
): Analyzer {
  const own = createNameAnalyzer();
  let presidio: { settings: PresidioSettings; analyzer: Analyzer } | undefined;
  return {
    analyze(texts, signal) {
      const wanted = settings();
      if (wanted === undefined) return own.analyze(texts, signal);
      if (presidio?.settings !== wanted) {
        presidio = { settings: wanted, analyzer: createPresidioAnalyzer(services, wanted) };
      }
      return presidio.analyzer.analyze(texts, signal);
    },
    stop: () => own.stop(),
  };
}
