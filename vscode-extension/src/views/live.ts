/** The debug sessions that have ranks, and what is known of these; one list each, no question a rank. */

import * as vscode from 'vscode';
import { Coalesced } from '../logic/coalesced';
import { Frames, type Message } from '../logic/ranks/frames';
import { Ranks, type Listing, type News } from '../logic/ranks/rows';

const TYPES = ['dap-mux', 'debugpy'];
const MOMENT = 100; // ms
/** What moves ranks, for a session that does not tell it by the event `ranks`. */
const MOVES = new Set(['stopped', 'continued', 'thread']);

/** One session; `begun` once it has answered `list`. */
export class Live {
  readonly ranks = new Ranks();
  readonly frames = new Frames();
  scope = 'auto';
  view = 'auto';
  begun = false;
  private told = false;
  private readonly settings = new Set<number>();
  private readonly lists = new Set<number>();
  private readonly listing = new Coalesced(() => this.list(), MOMENT);

  constructor(
    readonly session: vscode.DebugSession,
    private readonly changed: () => void,
  ) {}

  async request<Body>(command: string, body: object = {}): Promise<Body> {
    return (await this.session.customRequest(command, body)) as Body;
  }

  sent(message: Message): void {
    this.frames.sent(message);
    const { expression } = (message.arguments ?? {}) as { expression?: string };
    if (message.seq === undefined) return;
    // `%scope rank` in the debug console changes what the status bar shows
    const changes = message.command === 'evaluate' && /^\s*%(?:scope|view)/.test(expression ?? '');
    if (changes) this.settings.add(message.seq);
    if (message.command === 'list' && isWhole(message.arguments)) this.lists.add(message.seq);
  }

  received(message: Message): void {
    this.frames.received(message);
    if (message.type === 'response') this.answered(message);
    else if (message.event === 'ranks') this.news(message.body as News);
    else if (this.begun && !this.told && MOVES.has(message.event ?? '')) this.listing.poke();
  }

  private answered({ command, success, body, request_seq: asked = -1 }: Message): void {
    const attached = command === 'attach' || command === 'launch';
    if (attached && success) void this.begin();
    // taken here, in the order of the wire: the request's own promise may end after a later event
    if (this.lists.delete(asked) && success) this.ranks.replace(body as Listing);
    if (this.settings.delete(asked)) void this.readSettings();
  }

  private news(news: News): void {
    this.told = true;
    const whole = this.ranks.change(news);
    if (!this.begun) return;
    if (!whole) this.listing.poke();
    this.changed();
  }

  /** A session of debugpy may be a job of many ranks or one plain process: its answer tells. */
  private async begin(): Promise<void> {
    try {
      await this.request('list');
    } catch {
      return; // a plain debugpy, which knows no such request: nothing of ours to show
    }
    this.begun = true;
    await this.readSettings();
    this.changed();
    this.refresh(); // what has moved since that list
  }

  /** What has been asked for may show in the list without any standard event: `pausing`, say. */
  refresh(): void {
    if (!this.told) this.listing.poke();
  }

  private async list(): Promise<void> {
    try {
      await this.request('list');
      this.changed();
    } catch {
      // the session has just ended: its view goes with it
    }
  }

  private async readSettings(): Promise<void> {
    await this.set('scope');
    await this.set('view');
  }

  async set(what: 'scope' | 'view', value?: string): Promise<void> {
    const arguments_ = value === undefined ? {} : { value };
    this[what] = (await this.request<{ value: string }>(what, arguments_)).value;
    this.changed();
  }

  dispose(): void {
    this.listing.dispose();
  }
}

/** Whether a `list` asks for every rank in every state. */
function isWhole(asked: unknown): boolean {
  return typeof asked !== 'object' || asked === null || !('ranks' in asked || 'states' in asked);
}

/** All of them; `current` is the one that the user works with. */
export class Sessions implements vscode.Disposable {
  private readonly all = new Map<string, Live>();
  private readonly emitter = new vscode.EventEmitter<void>();
  private readonly told = new Coalesced(() => this.tell(), MOMENT);
  private readonly parts: vscode.Disposable[];
  /** Something of a session's ranks is another now; at most ten times a second. */
  readonly onDidChange = this.emitter.event;

  constructor() {
    const changed = (): void => {
      this.told.poke();
    };
    const track = (session: vscode.DebugSession): vscode.DebugAdapterTracker => this.track(session, changed);
    this.parts = [
      ...TYPES.map((type) =>
        vscode.debug.registerDebugAdapterTrackerFactory(type, { createDebugAdapterTracker: track }),
      ),
      vscode.debug.onDidChangeActiveDebugSession(changed),
      vscode.debug.onDidTerminateDebugSession(({ id }) => {
        this.all.get(id)?.dispose();
        this.all.delete(id);
        changed();
      }),
    ];
  }

  private track(session: vscode.DebugSession, changed: () => void): vscode.DebugAdapterTracker {
    const live = new Live(session, changed);
    this.all.set(session.id, live);
    return {
      onWillReceiveMessage: (message: Message) => {
        live.sent(message);
      },
      onDidSendMessage: (message: Message) => {
        live.received(message);
      },
    };
  }

  private async tell(): Promise<void> {
    // first, for nothing can be shown in a view before it is there
    await vscode.commands.executeCommand('setContext', 'dapMux.active', this.current !== undefined);
    this.emitter.fire();
  }

  get current(): Live | undefined {
    const active = this.find(vscode.debug.activeDebugSession?.id);
    return active ?? [...this.all.values()].filter(({ begun }) => begun).at(-1);
  }

  find(id: string | undefined): Live | undefined {
    const live = id === undefined ? undefined : this.all.get(id);
    return live?.begun ? live : undefined;
  }

  dispose(): void {
    this.told.dispose();
    vscode.Disposable.from(...this.parts, this.emitter, ...this.all.values()).dispose();
  }
}
