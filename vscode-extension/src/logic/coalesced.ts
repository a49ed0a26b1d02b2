/** Many calls become few. Pure but for the clock. */

/** Runs `work` at most once every `pause` ms, and never twice at the same time. */
export class Coalesced {
  private timer: NodeJS.Timeout | undefined;
  private busy = false;
  private again = false;

  constructor(
    private readonly work: () => Promise<void> | void,
    private readonly pause: number,
  ) {}

  poke(): void {
    if (this.busy) this.again = true;
    else this.timer ??= setTimeout(() => void this.run(), this.pause);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.again = false;
  }

  private async run(): Promise<void> {
    this.timer = undefined;
    this.busy = true;
    try {
      await this.work();
    } finally {
      this.busy = false;
    }
    if (this.again) {
      this.again = false;
      this.poke();
    }
  }
}
