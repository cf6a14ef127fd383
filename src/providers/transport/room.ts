/** Memory for what is read from outside: large answers are counted before they are kept. */
export interface Room {
  /** Counts so many bytes more; undefined: there is room at once. Throws or rejects where there is none. */
  take(bytes: number, waitMsMax?: number): Promise<void> | undefined;
}
