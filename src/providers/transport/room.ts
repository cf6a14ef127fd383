/** A budget of memory for answers: large ones are counted before they are kept. */
export interface MemoryBudget {
  /** Reserves more bytes; undefined if they are available at once. Throws or rejects if they are not. */
  take(bytes: number, waitMsMax?: number): Promise<void> | undefined;
}
