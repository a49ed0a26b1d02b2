/** How `dap-mux` is started: which Python, and which flags. Pure. */

import type { Attributes } from './reach';

/** A command that understands the words of `dap-mux`: `['/usr/bin/python3', '-m', 'dap_mux']`. */
export type Command = readonly [string, ...string[]];

/**
 * What the adapter must know before the editor's first message comes. All other attributes reach it
 * with `attach` and `launch`.
 */
export const FLAGS: Readonly<Record<string, string>> = {
  listenAddress: '--listen',
  logDir: '--log-dir',
  maxMessage: '--max-message',
  tokenFile: '--token-file',
  tlsCert: '--tls-cert',
  tlsKey: '--tls-key',
};

/** The words after `dap-mux` for this configuration. */
export function adapterWords(configuration: Attributes): string[] {
  const words = ['adapter'];
  for (const [attribute, flag] of Object.entries(FLAGS)) {
    const value = configuration[attribute];
    if (typeof value === 'string' || typeof value === 'number') words.push(flag, String(value));
  }
  if (configuration['insecure'] === true) words.push('--insecure');
  const verbosity = Number(configuration['verbosity'] ?? 0);
  if (verbosity > 0) words.push(`-${'v'.repeat(Math.min(verbosity, 3))}`);
  return words;
}

/** Where a Python may be found. Empty and missing ones are passed over. */
export interface Interpreters {
  /** The attribute `python` of the configuration. */
  attribute?: string | undefined;
  /** What the Python extension has chosen for the folder. */
  extension?: string | undefined;
  /** The setting `python.defaultInterpreterPath`, where somebody has set it. */
  setting?: string | undefined;
  /** A virtual environment in the folder. */
  environment?: string | undefined;
}

/**
 * The commands to try, best first. A Python that the user has named is the only one: another one
 * has other packages.
 */
export function candidates(found: Interpreters): Command[] {
  if (found.attribute) return [ofPython(found.attribute)];
  const named = [found.extension, found.setting, found.environment].filter((each) => each);
  const pythons = new Set([...named, 'python3', 'python'] as string[]);
  return [...[...pythons].map(ofPython), ['dap-mux']];
}

function ofPython(python: string): Command {
  return [python, '-m', 'dap_mux'];
}

/** The command that installs dap-mux where the first candidate looks for it, for a shell. */
export function installWords(tried: readonly Command[]): string[] {
  const python = tried[0]?.[0] ?? 'python3';
  return [python, '-m', 'pip', 'install', 'dap-mux-cluster'];
}
