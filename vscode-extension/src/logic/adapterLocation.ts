/** Where the debug adapter of a configuration is. Pure. */

export type Attributes = Readonly<Record<string, unknown>>;

/** A running session, one that the user still has to choose, or an adapter that we start. */
export type AdapterLocation =
  | { kind: 'server'; host: string; port: number }
  | { kind: 'socket'; path: string }
  | { kind: 'choose' }
  | { kind: 'adapter' };

/** Says what the user has to change in a configuration. */
export class ConfigurationError extends Error {}

/** Says what is missing elsewhere: with the same configuration it may work later. */
export class NotReadyError extends ConfigurationError {}

/** Attributes that name ranks, which the adapter that we start connects to. */
const RANK_ATTRIBUTES = ['endpoints', 'ranks', 'cluster', 'tunnel'];

/**
 * `connect` alone is a running session. With `ranks` it is where rank 0 listens, which like
 * `endpoints` and `cluster` needs an adapter of our own. Without any, the user chooses a session.
 */
export function locateAdapter(configuration: Attributes): AdapterLocation {
  if (configuration['request'] === 'launch') return { kind: 'adapter' };
  refuseUnsupported(configuration);
  if (RANK_ATTRIBUTES.some((name) => isGiven(configuration[name]))) return { kind: 'adapter' };
  const connect = configuration['connect'] ?? hostAndPort(configuration);
  return isGiven(connect) ? runningAt(connect) : { kind: 'choose' };
}

/** Attributes of debugpy without which the configuration would mean something else. */
const UNSUPPORTED: Attributes = {
  processId: 'ranks are not injected into running processes; start them with "dap-mux run", or name them by "endpoints"',
  listen: 'an attach configuration does not wait for ranks; run "dap-mux attach dial:N" for N ranks that connect to it',
};

function refuseUnsupported(configuration: Attributes): void {
  for (const [name, reason] of Object.entries(UNSUPPORTED)) {
    if (isGiven(configuration[name])) throw new ConfigurationError(`"${name}" is not supported: ${String(reason)}`);
  }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false;
}

/** `host` and `port` without `connect`, as debugpy accepts them. */
function hostAndPort(configuration: Attributes): unknown {
  const { host, port } = configuration;
  return port === undefined ? undefined : { host, port };
}

function runningAt(connect: unknown): AdapterLocation {
  const { host, port, socket } = (typeof connect === 'object' ? connect : {}) as Attributes;
  if (typeof socket === 'string' && socket) return { kind: 'socket', path: socket };
  const number = portOf(port);
  if (number === undefined) {
    throw new ConfigurationError(
      `"connect" needs the session's port, a number from 1 to 65535, but is ${JSON.stringify(connect)}`,
    );
  }
  return { kind: 'server', host: typeof host === 'string' && host ? host : 'localhost', port: number };
}

function portOf(port: unknown): number | undefined {
  const number = typeof port === 'string' ? Number(port) : port;
  const fits = typeof number === 'number' && Number.isInteger(number);
  return fits && number >= 1 && number <= 65535 ? number : undefined;
}
