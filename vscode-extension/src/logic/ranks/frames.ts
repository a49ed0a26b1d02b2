/** How far up its stack each frame is that an editor was told of. Pure. */

/** A DAP message, as far as it is looked at here. */
export interface Message {
  readonly type?: string;
  readonly seq?: number;
  readonly request_seq?: number;
  readonly command?: string;
  readonly event?: string;
  readonly success?: boolean;
  readonly arguments?: unknown;
  readonly body?: unknown;
}

/** Watches `stackTrace`; what it knows of a frame ends with the stop, as the frame does. */
export class Frames {
  private readonly asked = new Map<number, number>();
  private readonly depths = new Map<number, number>();

  sent(message: Message): void {
    if (message.command !== 'stackTrace' || message.seq === undefined) return;
    const { startFrame } = (message.arguments ?? {}) as { startFrame?: number };
    this.asked.set(message.seq, startFrame ?? 0);
  }

  received(message: Message): void {
    if (message.event === 'continued') this.depths.clear();
    if (message.type !== 'response' || message.request_seq === undefined) return;
    const start = this.asked.get(message.request_seq);
    this.asked.delete(message.request_seq);
    if (start !== undefined && message.success) this.note(start, message.body);
  }

  private note(start: number, body: unknown): void {
    const { stackFrames } = body as { stackFrames: readonly { id: number }[] };
    stackFrames.forEach(({ id }, index) => this.depths.set(id, start + index));
  }

  /** 0 is the innermost; undefined for a frame that is not known. */
  depth(frameId: number): number | undefined {
    return this.depths.get(frameId);
  }
}
