/** The configurations that this extension offers, and what it adds to the user's. Pure. */

import type { Attributes } from './reach';
import { connectOf, labelOf, type RunningSession } from './sessions';

export interface Configuration extends Record<string, unknown> {
  type: string;
  request: string;
  name: string;
}

export const TYPE = 'dap-mux';

/** For ranks in pods: asks which, forwards their ports, attaches. */
export const POD: Configuration = {
  name: 'Remote Attach to Cluster: Pick a Pod',
  type: TYPE,
  request: 'attach',
  cluster: { kind: 'oc', port: 5678, ranks: 1 },
  pathMappings: [{ localRoot: '${workspaceFolder}', remoteRoot: '.' }],
  justMyCode: true,
};

/** For a session that runs elsewhere, behind one forwarded port. */
export const REMOTE: Configuration = {
  name: 'Remote Attach to Cluster',
  type: TYPE,
  request: 'attach',
  connect: { host: 'localhost', port: 5677 },
  pathMappings: [{ localRoot: '${workspaceFolder}', remoteRoot: '.' }],
  justMyCode: true,
};

/** For a script on this machine. */
export const LAUNCH: Configuration = {
  name: 'Launch 4 ranks of this file',
  type: TYPE,
  request: 'launch',
  program: '${file}',
  nproc: 4,
  cwd: '${workspaceFolder}',
};

/** For a session that runs on this machine already. */
export function attachTo(session: RunningSession, name = labelOf(session)): Configuration {
  return { name: `Attach to ${name}`, type: TYPE, request: 'attach', connect: connectOf(session) };
}

/** Whether F5 was pressed without any configuration: VS Code then sends an empty one. */
export function isEmpty(configuration: Attributes): boolean {
  return !configuration['type'] && !configuration['request'] && !configuration['name'];
}

/** Whether a text is a number of ranks. */
export function isCount(text: string): boolean {
  return /^[1-9][0-9]{0,4}$/.test(text.trim());
}

/**
 * What the adapter hears beside the user's words: where the workspace is, for path mappings, and
 * that this editor understands the event `ranks`.
 */
export function completed<C extends Attributes>(configuration: C, folder: string | undefined): C {
  const events = configuration['events'];
  return {
    ...configuration,
    events: [...new Set([...(Array.isArray(events) ? (events as unknown[]) : []), 'ranks'])],
    ...(folder !== undefined && configuration['workspaceFolder'] === undefined
      ? { workspaceFolder: folder }
      : {}),
  };
}
