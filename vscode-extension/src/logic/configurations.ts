/** The configurations that this extension offers, and what it adds to the user's. Pure. */

import type { Attributes } from './adapterLocation';
import { connectOf, labelOf, type RunningSession } from './sessions';

export interface Configuration extends Record<string, unknown> {
  type: string;
  request: string;
  name: string;
}

export const TYPE = 'dap-mux';

/** For ranks in pods: asks for the pod, forwards its ports, attaches. */
export const POD = remote('Remote Attach to Cluster: Pick a Pod', { cluster: { kind: 'oc', port: 5678, ranks: 1 } });

/** For a session elsewhere, behind a forwarded port. */
export const REMOTE = remote('Remote Attach to Cluster', { connect: { host: 'localhost', port: 5677 } });

function remote(name: string, where: Attributes): Configuration {
  const pathMappings = [{ localRoot: '${workspaceFolder}', remoteRoot: '.' }];
  return { name, type: TYPE, request: 'attach', ...where, pathMappings, justMyCode: true };
}

/** For a script on this machine. */
export const LAUNCH: Configuration = {
  name: 'Launch 4 ranks of this file',
  type: TYPE,
  request: 'launch',
  program: '${file}',
  nproc: 4,
  cwd: '${workspaceFolder}',
};

/** For a session that is running on this machine. */
export function attachTo(session: RunningSession, name = labelOf(session)): Configuration {
  return { name: `Attach to ${name}`, type: TYPE, request: 'attach', connect: connectOf(session) };
}

/** Whether there is no configuration: VS Code sends an empty one for F5 without launch.json. */
export function isEmpty(configuration: Attributes): boolean {
  return !configuration['type'] && !configuration['request'] && !configuration['name'];
}

/** Whether its session can be ended and started again without harm: one that has launched its job would end it. */
export function mayAttachAgain(configuration: Attributes): boolean {
  return configuration['request'] === 'attach';
}

/** Whether a text is a valid number of ranks. */
export function isCount(text: string): boolean {
  return /^[1-9][0-9]{0,4}$/.test(text.trim());
}

/** Defaults of the Python extension that differ from those of debugpy itself. */
const DEFAULTS: Attributes = { showReturnValue: true };

/** Names the attributes that are defaults: a session that is configured otherwise does not report these. */
const UNSET_BY_USER = '__defaults'; // dap_mux/engine/clients/attach.py

/**
 * Adds what the adapter needs beside the user's attributes: the workspace folder, for path mappings,
 * and that this editor understands the event `ranks`.
 */
export function completed<C extends Attributes>(configuration: C, folder: string | undefined): C {
  const events = configuration['events'];
  const unset = Object.keys(DEFAULTS).filter((name) => configuration[name] === undefined);
  return {
    ...DEFAULTS,
    ...configuration,
    [UNSET_BY_USER]: unset,
    events: [...new Set([...(Array.isArray(events) ? (events as unknown[]) : []), 'ranks'])],
    ...(folder !== undefined && configuration['workspaceFolder'] === undefined
      ? { workspaceFolder: folder }
      : {}),
  };
}
