/** The debug sessions that have ranks, and the state of these, from one request for all ranks. */

import * as vscode from 'vscode';
import { ContextKey, RANK_DEBUG_TYPES } from '../constants';
import { Frames, type Message } from '../logic/ranks/frames';
import type { Moment } from '../logic/ranks/moves';
import { classesOf } from '../logic/ranks/classes';
import { type Hues, nextHues, NO_HUES } from '../logic/ranks/hues';
import { type Listing, Ranks, type RanksEvent } from '../logic/ranks/rows';
import { scopeEntries, type ScopeEntry } from '../logic/ranks/scopes';
import type { NamedSet } from '../logic/ranks/suggestions';
import { Throttler } from '../logic/throttler';

const UPDATE_INTERVAL_MS = 100;
/** Events that may change ranks, for a session that does not send the event `ranks`. */
const STANDARD_EVENTS = new Set(['stopped', 'continued', 'thread']);

/** The body of DAP's event `continued`. */
interface Continued {
  readonly threadId: number;
  readonly allThreadsContinued?: boolean;
}

/** One debug session; `hasRanks` once it has answered `list`. */
export class RankSession {
  readonly ranks = new Ranks();
  readonly frames = new Frames();
  scope = 'auto';
  view = 'auto';
  named: readonly NamedSet[] = [];
  hues: Hues = NO_HUES;
  hasRanks = false;
  private sendsRanksEvents = false;
  private readonly settingRequests = new Set<number>();
  private readonly listRequests = new Set<number>();
  private readonly listThrottler = new Throttler(() => this.list(), UPDATE_INTERVAL_MS);

  constructor(
    readonly debugSession: vscode.DebugSession,
    private readonly onChange: () => void,
    private readonly onMessage: (message: Message) => void,
  ) {}

  async request<Body>(command: string, body: object = {}): Promise<Body> {
    return (await this.debugSession.customRequest(command, body)) as Body;
  }

  sent(message: Message): void {
    this.frames.sent(message);
    if (message.seq === undefined) return;
    if (changesSettings(message)) this.settingRequests.add(message.seq);
    if (message.command === 'list' && listsAll(message.arguments)) this.listRequests.add(message.seq);
  }

  received(message: Message): void {
    this.frames.received(message);
    this.onMessage(message);
    if (message.type === 'response') this.onResponse(message);
    else if (message.event === 'ranks') this.onRanksEvent(message.body as RanksEvent);
    else this.onStandardEvent(message);
  }

  private onStandardEvent({ event = '', body }: Message): void {
    if (event === 'continued') {
      const { threadId, allThreadsContinued } = body as Continued;
      this.ranks.continued(threadId, allThreadsContinued ?? true);
    }
    if (this.hasRanks && !this.sendsRanksEvents && STANDARD_EVENTS.has(event)) this.listThrottler.schedule();
  }

  private onResponse({ command, success, body, request_seq: seq = -1 }: Message): void {
    const attached = command === 'attach' || command === 'launch';
    if (attached && success) void this.start();
    // handled here, in the order received: the request's promise may resolve after a later event
    if (this.listRequests.delete(seq) && success) this.ranks.replace(body as Listing);
    if (this.settingRequests.delete(seq)) void this.readSettings();
  }

  private onRanksEvent(event: RanksEvent): void {
    this.sendsRanksEvents = true;
    const complete = this.ranks.apply(event);
    if (!this.hasRanks) return;
    if (!complete) this.listThrottler.schedule();
    this.onChange();
  }

  /** A debugpy session may be a job of many ranks or a single process: ask it. */
  private async start(): Promise<void> {
    try {
      await this.request('list');
    } catch {
      return; // plain debugpy, which does not support the request
    }
    this.hasRanks = true;
    await this.readSettings();
    this.onChange();
    this.refresh(); // for changes since that list
  }

  /** What has been counted of the ranks' moves by now, with all of them as they are now. */
  async moment(): Promise<Moment> {
    await this.request('list');
    return this.ranks.moves.moment();
  }

  /** Update after a request, because a change such as `pausing` causes no standard event. */
  refresh(): void {
    if (!this.sendsRanksEvents) this.listThrottler.schedule();
  }

  private async list(): Promise<void> {
    try {
      await this.request('list');
      this.onChange();
    } catch {
      // the session has just ended, and its view with it
    }
  }

  private async readSettings(): Promise<void> {
    this.named = (await this.request<{ groups: NamedSet[] }>('groups')).groups;
    await this.set('scope');
    await this.set('view');
  }

  /** What the scope can be. */
  get scopes(): ScopeEntry[] {
    return scopeEntries(this.ranks.all(), this.named, this.hues);
  }

  colour(): void {
    this.hues = nextHues(this.hues, classesOf(this.ranks.all()), this.named.map(({ name }) => name));
  }

  async set(setting: 'scope' | 'view', value?: string): Promise<void> {
    const arguments_ = value === undefined ? {} : { value };
    this[setting] = (await this.request<{ value: string }>(setting, arguments_)).value;
    this.onChange();
  }

  dispose(): void {
    this.listThrottler.dispose();
  }
}

/** Whether it changes what is shown: `%scope rank` in the debug console, or a set that is named. */
function changesSettings({ command, arguments: given }: Message): boolean {
  const { expression = '', ...rest } = (given ?? {}) as { expression?: string };
  if (command === 'groups') return Object.keys(rest).length > 0;
  return command === 'evaluate' && /^\s*%(?:scope|view|groups)/.test(expression);
}

/** Whether the arguments of a `list` select every rank in every state. */
function listsAll(args: unknown): boolean {
  return typeof args !== 'object' || args === null || !('ranks' in args || 'states' in args);
}

export interface Received {
  readonly session: RankSession;
  readonly message: Message;
}

/** All sessions with ranks; `current` is the one that the user works with. */
export class RankSessions implements vscode.Disposable {
  private readonly all = new Map<string, RankSession>();
  private readonly emitter = new vscode.EventEmitter<void>();
  private readonly throttler = new Throttler(() => this.notify(), UPDATE_INTERVAL_MS);
  private readonly disposables: vscode.Disposable[];
  /** Fires when a session or its ranks have changed, at most ten times a second. */
  readonly onDidChange = this.emitter.event;
  private readonly messageEmitter = new vscode.EventEmitter<Received>();
  /** Fires for each message of a session. */
  readonly onDidReceive = this.messageEmitter.event;

  constructor() {
    const onChange = (): void => {
      this.throttler.schedule();
    };
    const track = (session: vscode.DebugSession): vscode.DebugAdapterTracker => this.track(session, onChange);
    this.disposables = [
      ...RANK_DEBUG_TYPES.map((type) =>
        vscode.debug.registerDebugAdapterTrackerFactory(type, { createDebugAdapterTracker: track }),
      ),
      vscode.debug.onDidChangeActiveDebugSession(onChange),
      vscode.debug.onDidTerminateDebugSession(({ id }) => {
        this.all.get(id)?.dispose();
        this.all.delete(id);
        onChange();
      }),
    ];
  }

  private track(debugSession: vscode.DebugSession, onChange: () => void): vscode.DebugAdapterTracker {
    const session: RankSession = new RankSession(debugSession, onChange, (message) => {
      this.messageEmitter.fire({ session, message });
    });
    this.all.set(debugSession.id, session);
    return {
      onWillReceiveMessage: (message: Message) => {
        session.sent(message);
      },
      onDidSendMessage: (message: Message) => {
        session.received(message);
      },
    };
  }

  private async notify(): Promise<void> {
    for (const session of this.all.values()) session.colour();
    // first, because a view shows nothing before it exists
    await vscode.commands.executeCommand('setContext', ContextKey.active, this.current !== undefined);
    this.emitter.fire();
  }

  get current(): RankSession | undefined {
    const active = this.find(vscode.debug.activeDebugSession?.id);
    return active ?? [...this.all.values()].filter(({ hasRanks }) => hasRanks).at(-1);
  }

  find(id: string | undefined): RankSession | undefined {
    const session = id === undefined ? undefined : this.all.get(id);
    return session?.hasRanks ? session : undefined;
  }

  dispose(): void {
    this.throttler.dispose();
    vscode.Disposable.from(...this.disposables, this.emitter, this.messageEmitter, ...this.all.values()).dispose();
  }
}
