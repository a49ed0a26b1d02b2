/** Which session the language server follows for this window: the one that is debugged here. */

import * as vscode from 'vscode';
import { log } from '../log';
import { followedBy, type FollowedSession, isSame, ONLY_SESSION, type SessionBody } from '../logic/followedSession';
import { Throttler } from '../logic/throttler';
import type { RankSession, RankSessions } from './rankSession';

export class CurrentSession implements vscode.Disposable {
  followed = ONLY_SESSION;
  private debugSession: string | undefined;
  private readonly emitter = new vscode.EventEmitter<FollowedSession>();
  private readonly throttler = new Throttler(() => this.update(), 0);
  private readonly subscription: vscode.Disposable;
  readonly onDidChange = this.emitter.event;

  constructor(private readonly sessions: RankSessions) {
    this.subscription = sessions.onDidChange(() => {
      this.throttler.schedule();
    });
    this.throttler.schedule();
  }

  /** It fires for every change of ranks too, and a session is asked only once. */
  private async update(): Promise<void> {
    const session = this.sessions.current;
    const id = session?.debugSession.id;
    if (id === this.debugSession) return;
    const followed = session ? await followedOf(session) : ONLY_SESSION;
    this.debugSession = id;
    if (isSame(followed, this.followed)) return;
    this.followed = followed;
    this.emitter.fire(followed);
  }

  dispose(): void {
    this.throttler.dispose();
    this.subscription.dispose();
    this.emitter.dispose();
  }
}

async function followedOf(session: RankSession): Promise<FollowedSession> {
  try {
    return await followedBy(session.debugSession.configuration, () => session.request<SessionBody>('session'));
  } catch (error) {
    log.info(`"${session.debugSession.name}" is not followed in the text: ${String(error)}`); // it is older, or has ended
    return ONLY_SESSION;
  }
}
