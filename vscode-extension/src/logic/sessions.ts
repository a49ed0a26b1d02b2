/** Running sessions, from `dap-mux sessions --json` and from announcements. Pure. */

import type { AdapterLocation, Attributes } from './adapterLocation';

/** `socket`: its unix socket, which needs no token. */
export interface RunningSession {
  host: string;
  port: number;
  socket: string | undefined;
  pid: number;
  groups: string[];
  /** When it was started, in seconds since the epoch; undefined in an announcement. */
  started?: number | undefined;
}

/** A job in a terminal of this window. `name`: its script or module. */
export interface Announcement extends RunningSession {
  name: string;
  folder: string | undefined;
}

/** Parse a list of sessions. Throws SyntaxError for anything else. */
export function sessionsOf(text: string): RunningSession[] {
  const raw: unknown = JSON.parse(text);
  if (!Array.isArray(raw)) throw new SyntaxError('no list of sessions');
  return raw.map(sessionOf);
}

/** Parse an announcement. Throws SyntaxError for anything else. */
export function announcementOf(text: string): Announcement {
  const raw: unknown = JSON.parse(text);
  const { name, cwd } = fields(raw);
  return {
    ...sessionOf(raw),
    name: typeof name === 'string' && name ? name : 'job',
    folder: typeof cwd === 'string' && cwd ? cwd : undefined,
  };
}

function sessionOf(raw: unknown): RunningSession {
  const { host, port, unix, pid, groups, started } = fields(raw);
  if (typeof host !== 'string' || typeof port !== 'number' || typeof pid !== 'number') {
    throw new SyntaxError(`no session: ${JSON.stringify(raw)}`);
  }
  const socket = typeof unix === 'string' && unix ? unix : undefined;
  return {
    host,
    port,
    socket,
    pid,
    groups: Array.isArray(groups) ? groups.map(String) : [],
    started: typeof started === 'number' ? started : undefined,
  };
}

function fields(raw: unknown): Attributes {
  if (typeof raw !== 'object' || raw === null) throw new SyntaxError('no object');
  return raw as Attributes;
}

/** A session's label in lists: `localhost:5677 · trainer, eval`. */
export function labelOf(session: RunningSession): string {
  const groups = session.groups.filter((group) => group !== 'job');
  return `${addressOf(session)}${groups.length ? ` · ${groups.join(', ')}` : ''}`;
}

/** When a session was started, as the user's language writes it; the day only if it was not today. */
export function startOf({ started }: RunningSession, now = new Date()): string {
  if (started === undefined) return '?';
  const at = new Date(started * 1000);
  const time = { timeStyle: 'medium' } as const;
  const isToday = at.toDateString() === now.toDateString();
  return isToday ? at.toLocaleTimeString(undefined, time) : at.toLocaleString(undefined, { ...time, dateStyle: 'short' });
}

/** `host:port`, with brackets around an IPv6 address. */
export function addressOf({ host, port }: { host: string; port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The attribute `connect` for a session: its socket if it has one. */
export function connectOf(session: RunningSession): Record<string, unknown> {
  return session.socket
    ? { socket: session.socket }
    : { host: session.host, port: session.port };
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '::1']);

/** Whether a configuration that points there would reach this session. */
export function isAt(session: RunningSession, location: AdapterLocation): boolean {
  if (location.kind === 'socket') return session.socket === location.path;
  if (location.kind !== 'server' || session.port !== location.port) return false;
  return session.host === location.host || LOOPBACK.has(location.host);
}
