import type { ReadFile } from './read-file.ts';
import { type Filled, filled } from './settings/declare.ts';
import { retention } from './settings/service.ts';

/** For how many days old data is kept; undefined: for ever. */
export type RetentionConfig = Filled<typeof retention.settings>;

/** Reads the section `retention`. */
export function readRetention(file: ReadFile | undefined): RetentionConfig {
  const settings = filled(retention, file?.value.retention);
  const { generations_days, closed_windows_days } = settings;
  if (file !== undefined && closed_windows_days !== undefined && closed_windows_days < (generations_days ?? Infinity)) {
    throw file.wrong(
      ['retention', 'closed_windows_days'],
      'must be at least retention.generations_days, which must be set as well: windows are kept as long as the calls that they were charged for',
    );
  }
  return settings;
}
