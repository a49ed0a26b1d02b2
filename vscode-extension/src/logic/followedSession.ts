/** Which session the language server follows for a window, as the settings that it takes. Pure. */

import { type Attributes, locateAdapter } from './adapterLocation';
import { addressOf } from './sessions';

/** `session`: HOST:PORT, or `only`: the one that runs, and none while several do. */
export interface FollowedSession {
  readonly session: string;
  /** The name of its launch configuration, into which a quick fix writes. */
  readonly configuration?: string;
  readonly token?: string;
}

/** While nothing is debugged in this window. */
export const ONLY_SESSION: FollowedSession = { session: 'only' };

/** The answer of the request `session` (docs/protocol.md). */
export interface SessionBody {
  readonly address: string | null;
}

/**
 * The session of a debug session. A session that was reached by an address may be behind a forwarded
 * port, and so is followed by that address. Any other is on this machine, and `ask` says where.
 */
export async function followedBy(
  configuration: Attributes,
  ask: () => Promise<SessionBody>,
): Promise<FollowedSession> {
  const { name, token } = configuration;
  const location = locateAdapter(configuration);
  const address = location.kind === 'server' ? addressOf(location) : (await ask()).address;
  if (address === null) return ONLY_SESSION;
  return {
    session: address,
    ...(typeof name === 'string' && name ? { configuration: name } : {}),
    ...(typeof token === 'string' && token ? { token } : {}),
  };
}

export function isSame(one: FollowedSession, other: FollowedSession): boolean {
  return one.session === other.session && one.configuration === other.configuration && one.token === other.token;
}
