/** Where the debug adapter of one configuration is. Pure. */

export type Attributes = Readonly<Record<string, unknown>>;

/** A session that runs already, one that the user still has to name, or an adapter of our own. */
export type Reach =
  | { kind: 'server'; host: string; port: number }
  | { kind: 'session'; file: string }
  | { kind: 'pick' }
  | { kind: 'adapter' };

export class ConfigurationError extends Error {}

/**
 * `connect` alone is a running session. With `ranks` it is where rank 0 listens, and like
 * `endpoints` a matter of our own adapter. With none of them a running session is chosen.
 */
export function reachOf(configuration: Attributes): Reach {
  if (configuration['request'] === 'launch') return { kind: 'adapter' };
  if (isGiven(configuration['endpoints']) || isGiven(configuration['ranks'])) {
    return { kind: 'adapter' };
  }
  if (typeof configuration['session'] === 'string' && configuration['session']) {
    return { kind: 'session', file: configuration['session'] };
  }
  const connect = configuration['connect'] ?? portAndHost(configuration);
  return connect === undefined ? { kind: 'pick' } : serverAt(connect);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** `host` and `port` without `connect`, as debugpy takes them too. */
function portAndHost(configuration: Attributes): unknown {
  const { host, port } = configuration;
  return port === undefined ? undefined : { host, port };
}

function serverAt(connect: unknown): Reach {
  const { host, port } = (typeof connect === 'object' && connect ? connect : {}) as Attributes;
  const number = portOf(port);
  if (number === undefined) {
    throw new ConfigurationError(
      `"connect" needs the port of the session, a number from 1 to 65535: ${JSON.stringify(connect)}`,
    );
  }
  return { kind: 'server', host: typeof host === 'string' && host ? host : 'localhost', port: number };
}

function portOf(port: unknown): number | undefined {
  const number = typeof port === 'string' ? Number(port) : port;
  const fits = typeof number === 'number' && Number.isInteger(number);
  return fits && number >= 1 && number <= 65535 ? number : undefined;
}
