/** Bounds of the sandbox, unit last. */
export const limits = {
  /** The body of a request. */
  body_bytes_max: 64 * 1024 * 1024,
  /** Tokens of an answer, and values of other settings that are not durations. */
  tokens_max: 1_000_000,
  delay_ms_max: 600_000,
  /** Numbers of one vector, as the largest models make, and of all vectors of one answer: they are made in the process that serves. */
  dimensions_max: 4_096,
  numbers_max: 262_144,
  /** Users or conversations, cached prefixes and attempts that are remembered, each. */
  memory_entries_max: 10_000,
  /** The size up to which the body of an attempt is remembered, and the number of the latest bodies. */
  body_remembered_bytes_max: 64 * 1024,
  bodies_max: 64,
} as const;
