/** Lets a view read its data before it is told that they have changed once more. Pure except for its timer. */

/** After this long without a question it has read all that it shows. */
const QUIET_MS = 200;
/** A view that nobody sees does not read. */
const UNREAD_TIMEOUT_MS = 2_000;

/**
 * VS Code's tree views forget all their rows at each refresh, and answer questions about those that it has not
 * read again with nothing. Refreshed while it reads, it may show a class without ranks until the next change.
 */
export class RefreshGate {
  private timer: NodeJS.Timeout | undefined;
  private pending = false;

  /** `settled`: the view has read all that it shows, and is told nothing before this is done, or has failed. */
  constructor(
    private readonly refresh: () => void,
    private readonly settled: () => PromiseLike<void>,
  ) {}

  /** The data have changed. */
  schedule(): void {
    if (this.timer) {
      this.pending = true;
      return;
    }
    this.openAfter(UNREAD_TIMEOUT_MS);
    this.refresh();
  }

  /** The view has asked for some of them, told or not. */
  read(): void {
    this.openAfter(QUIET_MS);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.pending = false;
  }

  private openAfter(ms: number): void {
    clearTimeout(this.timer);
    const timer = setTimeout(() => {
      const open = () => {
        this.open(timer);
      };
      void this.settled().then(open, open);
    }, ms);
    this.timer = timer;
  }

  private open(timer: NodeJS.Timeout): void {
    if (this.timer !== timer) return; // it reads again, or is disposed of
    const { pending } = this;
    this.dispose();
    if (pending) this.schedule();
  }
}
