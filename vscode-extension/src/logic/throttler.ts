/** Limits how often something runs. Pure except for its timer. */

/** Runs `callback` at most once every `intervalMs`, and never twice at the same time. */
export class Throttler {
  private timer: NodeJS.Timeout | undefined;
  private running = false;
  private pending = false;

  constructor(
    private readonly callback: () => Promise<void> | void,
    private readonly intervalMs: number,
  ) {}

  schedule(): void {
    if (this.running) this.pending = true;
    else this.timer ??= setTimeout(() => void this.run(), this.intervalMs);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.pending = false;
  }

  private async run(): Promise<void> {
    this.timer = undefined;
    this.running = true;
    try {
      await this.callback();
    } finally {
      this.running = false;
    }
    if (this.pending) {
      this.pending = false;
      this.schedule();
    }
  }
}
