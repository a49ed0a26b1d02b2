/** The script that is `dap-mux` in terminals. Pure. */

import { RUN } from './adapterCommand';

/** Runs dap-mux in this Python, or says how to install it there. */
export function terminalScript(python: string): string {
  return `#!/bin/sh
# Written by the VS Code extension dap-mux.
python=${quoted(python)}
if ! "$python" -c 'import sys; sys.path.pop(0); import dap_mux' 2>/dev/null; then
  echo "dap-mux is not installed for $python: use the command \\"dap-mux: Install in This Workspace's Python\\"" >&2
  exit 127
fi
exec "$python" -c "${RUN}" "$@"
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
