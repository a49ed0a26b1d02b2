/** Where the debug adapter of one configuration is. Pure. */

export type Attributes = Readonly<Record<string, unknown>>;

/** A session that runs already, one that the user still has to choose, or an adapter of our own. */
export type Reach =
  | { kind: 'server'; host: string; port: number }
  | { kind: 'socket'; path: string }
  | { kind: 'choose' }
  | { kind: 'adapter' };

/** What the user has to change in a configuration, in one sentence. */
export class ConfigurationError extends Error {}

/** What names ranks, which our own adapter finds and reaches. */
const OF_RANKS = ['endpoints', 'ranks', 'cluster', 'tunnel'];

/**
 * `connect` alone is a running session. With `ranks` it is where rank 0 listens, and like
 * `endpoints` and `cluster` a matter of our own adapter. With none of them a running session is
 * chosen.
 */
export function reachOf(configuration: Attributes): Reach {
  if (configuration['request'] === 'launch') return { kind: 'adapter' };
  if (OF_RANKS.some((name) => isGiven(configuration[name]))) return { kind: 'adapter' };
  const connect = configuration['connect'] ?? hostAndPort(configuration);
  return isGiven(connect) ? runningAt(connect) : { kind: 'choose' };
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false;
}

/** `host` and `port` without `connect`, as debugpy takes them too. */
function hostAndPort(configuration: Attributes): unknown {
  const { host, port } = configuration;
  return port === undefined ? undefined : { host, port };
}

function runningAt(connect: unknown): Reach {
  const { host, port, socket } = (typeof connect === 'object' ? connect : {}) as Attributes;
  if (typeof socket === 'string' && socket) return { kind: 'socket', path: socket };
  const number = portOf(port);
  if (number === undefined) {
    throw new ConfigurationError(
      `"connect" needs the port of the session, a number from 1 to 65535; it is ${JSON.stringify(connect)}`,
    );
  }
  return { kind: 'server', host: typeof host === 'string' && host ? host : 'localhost', port: number };
}

function portOf(port: unknown): number | undefined {
  const number = typeof port === 'string' ? Number(port) : port;
  const fits = typeof number === 'number' && Number.isInteger(number);
  return fits && number >= 1 && number <= 65535 ? number : undefined;
}
