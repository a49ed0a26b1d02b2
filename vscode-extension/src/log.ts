/** The extension's log: Output panel, channel "dap-mux". */

import * as vscode from 'vscode';

export const log = vscode.window.createOutputChannel('dap-mux', { log: true });
