/** How `dap-mux` is started: with which Python and which flags. Pure. */

import type { Attributes } from './adapterLocation';

/** A command that takes the arguments of `dap-mux`: a Python's, or `['dap-mux']`. */
export type Command = readonly [string, ...string[]];

/**
 * Attributes that the adapter needs before the editor's first message. It gets all others with
 * `attach` or `launch`.
 */
export const FLAGS: Readonly<Record<string, string>> = {
  listenAddress: '--listen',
  logDir: '--log-dir',
  maxMessage: '--max-message',
  log: '--log',
  tokenFile: '--token-file',
  tlsCert: '--tls-cert',
  tlsKey: '--tls-key',
};

/** The arguments of `dap-mux` for this configuration. */
export function adapterArguments(configuration: Attributes): string[] {
  const args = ['adapter'];
  for (const [attribute, flag] of Object.entries(FLAGS)) {
    const value = configuration[attribute];
    if (typeof value === 'string' || typeof value === 'number') args.push(flag, String(value));
  }
  if (configuration['insecure'] === true) args.push('--insecure');
  const verbosity = Number(configuration['verbosity'] ?? 0);
  if (verbosity > 0) args.push(`-${'v'.repeat(Math.min(verbosity, 3))}`);
  return args;
}

/** Places to look for Python; empty and missing ones are skipped. */
export interface Interpreters {
  /** The attribute `python` of the configuration. */
  attribute?: string | undefined;
  /** The Python extension's choice for the folder. */
  extension?: string | undefined;
  /** The setting `python.defaultInterpreterPath`, unless it is the default. */
  setting?: string | undefined;
  /** A virtual environment in the folder. */
  environment?: string | undefined;
}

/**
 * The commands to try, best first. A Python that the user has named is the only candidate, because
 * others have other packages.
 */
export function candidates(found: Interpreters): Command[] {
  if (found.attribute) return [ofPython(found.attribute)];
  const named = [found.extension, found.setting, found.environment].filter((each) => each);
  const pythons = new Set([...named, 'python3', 'python'] as string[]);
  return [...[...pythons].map(ofPython), ['dap-mux']];
}

/** As `-m dap_mux`, but what lies in the working directory is not on Python's path (dap_mux/system/programs.py). */
export const RUN =
  "import sys; sys.path[0] = sys.path[0] or sys.path[1]; import runpy; runpy._run_module_as_main('dap_mux')";

function ofPython(python: string): Command {
  return [python, '-c', RUN];
}

/** The Python of the first candidate: that is where dap-mux is installed. */
export function installPython(tried: readonly Command[]): string {
  return tried[0]?.[0] ?? 'python3';
}

/** The command line that installs a wheel of dap-mux, and what its language server needs. */
export function installCommand(python: string, wheel: string): Command {
  return [python, '-m', 'pip', 'install', `${wheel}[lsp]`];
}
