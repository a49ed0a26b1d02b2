/** Whether something listens at the address of a session. */

import { connect, type NetConnectOpts } from 'node:net';
import type { AdapterLocation } from '../logic/adapterLocation';

const PROBE_TIMEOUT_MS = 2_000;
const NOTHING_LISTENS = new Set(['ECONNREFUSED', 'ENOENT']);

/** False only if it is certain that nothing listens there; other failures are VS Code's to report. */
export async function mayListen(location: AdapterLocation): Promise<boolean> {
  const code = await probe(location);
  return code === undefined || !NOTHING_LISTENS.has(code);
}

/** Whether a connection succeeds. */
export async function listens(location: AdapterLocation): Promise<boolean> {
  return (await probe(location)) === undefined;
}

/** The error code of a connection; undefined if it succeeded. */
function probe(location: AdapterLocation): Promise<string | undefined> {
  const options = optionsFor(location);
  if (!options) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const socket = connect(options);
    const finish = (code?: string): void => {
      socket.destroy();
      resolve(code);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => {
      finish('ETIMEDOUT');
    });
    socket.on('connect', () => {
      finish();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      finish(error.code ?? error.message);
    });
  });
}

function optionsFor(location: AdapterLocation): NetConnectOpts | undefined {
  if (location.kind === 'server') return { host: location.host, port: location.port };
  return location.kind === 'socket' ? { path: location.path } : undefined;
}
