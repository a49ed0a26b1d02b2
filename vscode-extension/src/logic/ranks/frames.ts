/** The stack depth of each frame that the editor knows. Pure. */

/** The parts of a DAP message that are used here. */
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

/** Observes `stackTrace`; frames are forgotten when their stop ends. */
export class Frames {
  private readonly requests = new Map<number, number>();
  private readonly depths = new Map<number, number>();

  sent(message: Message): void {
    if (message.command !== 'stackTrace' || message.seq === undefined) return;
    const { startFrame } = (message.arguments ?? {}) as { startFrame?: number };
    this.requests.set(message.seq, startFrame ?? 0);
  }

  received(message: Message): void {
    if (message.event === 'continued') this.depths.clear();
    if (message.type !== 'response' || message.request_seq === undefined) return;
    const start = this.requests.get(message.request_seq);
    this.requests.delete(message.request_seq);
    if (start !== undefined && message.success) this.note(start, message.body);
  }

  private note(start: number, body: unknown): void {
    const { stackFrames } = body as { stackFrames: readonly { id: number }[] };
    stackFrames.forEach(({ id }, index) => this.depths.set(id, start + index));
  }

  /** 0 is the innermost frame; undefined for unknown frames. */
  depth(frameId: number): number | undefined {
    return this.depths.get(frameId);
  }
}
