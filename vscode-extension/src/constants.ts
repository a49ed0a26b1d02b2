/** Identifiers that package.json, the adapter or VS Code know by these names. */

export const EXTENSION = 'dap-mux.dap-mux';

/** Debug types whose sessions may have ranks. */
export const RANK_DEBUG_TYPES = ['dap-mux', 'debugpy'];

/** The section of our settings, and its keys. */
export const SETTINGS = 'dapMux';
export const Setting = {
  announce: 'announce',
  languageServer: 'languageServer',
} as const;

export const Command = {
  attach: 'dapMux.attach',
  cast: 'dapMux.cast',
  clearSearch: 'dapMux.clearSearch',
  compare: 'dapMux.compare',
  compareRow: 'dapMux.rank.compare',
  continueOnly: 'dapMux.continueOnly',
  copyAsCast: 'dapMux.copyAsCast',
  doctor: 'dapMux.doctor',
  focus: 'dapMux.focus',
  install: 'dapMux.install',
  launch: 'dapMux.launch',
  listRanks: 'dapMux.listRanks',
  newGroup: 'dapMux.newGroup',
  openRow: 'dapMux.rank.open',
  pickView: 'dapMux.pickView',
  releaseRanks: 'dapMux.releaseRanks',
  releaseRow: 'dapMux.rank.release',
  runAllHere: 'dapMux.runAllHere',
  searchRanks: 'dapMux.searchRanks',
  setScope: 'dapMux.setScope',
  walkthrough: 'dapMux.walkthrough',
} as const;

/** A command of the language server: a quick fix has written a path mapping into launch.json. */
export const MAPPING_WRITTEN = 'dap-mux.mappingWritten'; // dap_mux/lsp/problems.py

/** Another one: the command of its code lenses. */
export const RUN_ALL_HERE = 'dap-mux.runAllHere'; // dap_mux/lsp/source_features.py

/** Commands of rows of the Ranks view: `dapMux.rank.continue` and so on. */
export const RANK_COMMAND_PREFIX = 'dapMux.rank.';

export const View = { ranks: 'dapMux.ranks', compare: 'dapMux.compare', scope: 'dapMux.scope' } as const;

/** Keys for `when` clauses. */
export const ContextKey = {
  active: 'dapMux.active',
  languageServer: 'dapMux.languageServer',
  searching: 'dapMux.searching',
} as const;

/** Tells jobs in this window's terminals where to announce themselves. */
export const ANNOUNCE_VARIABLE = 'DAP_MUX_ANNOUNCE'; // dap_mux/session
