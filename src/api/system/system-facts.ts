import type { EffectiveSetting } from '../../schemas/system.ts';
import type { RetentionDays } from './retention-sweeps.ts';

/** Facts about a running gateway, for operators. Of secrets it has only whether they are set. */
export interface SystemFacts {
  version: string;
  runtime: string;
  /** Unix seconds. */
  started_at: number;
  settings: readonly EffectiveSetting[];
  /** The settings of `retention`. */
  retention: RetentionDays;
  providers: readonly { name: string; is_sandbox?: true }[];
  /** Ids and last days of the models that the operator declared. */
  models: readonly { id: string; expiration_date?: string | undefined }[];
  host: string;
  public_origin: string | undefined;
  has_own_secret: boolean;
}
