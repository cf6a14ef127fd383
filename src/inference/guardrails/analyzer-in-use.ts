import type { Analyzer } from '../../guardrails/entities/analyzer.ts';
import type { Services } from '../../providers/transport/services.ts';
import type { PresidioSettings } from '../../schemas/presidio.ts';
import { createNameAnalyzer } from './name-analyzer.ts';
import { createPresidioAnalyzer } from './presidio-analyzer.ts';

/** The operator's analyzer if one is set, otherwise the gateway's own. Reads the settings for each call: a reload takes effect at once. */
export function createAnalyzer(
  services: Pick<Services, 'ask'>,
  settings: () => PresidioSettings | undefined,
): Analyzer {
  const own = createNameAnalyzer();
  let presidio: { settings: PresidioSettings; analyzer: Analyzer } | undefined;
  return {
    analyze(texts, signal) {
      const current = settings();
      if (current === undefined) return own.analyze(texts, signal);
      if (presidio?.settings !== current) {
        presidio = { settings: current, analyzer: createPresidioAnalyzer(services, current) };
      }
      return presidio.analyzer.analyze(texts, signal);
    },
    stop: () => own.stop(),
  };
}
