/** Identifiers that package.json, the adapter or VS Code know by these names. */

export const EXTENSION = 'dap-mux.dap-mux';

/** Debug types whose sessions may have ranks. */
export const RANK_DEBUG_TYPES = ['dap-mux', 'debugpy'];

/** The section of our settings, and its keys. */
export const SETTINGS = 'dapMux';
export const Setting = {
  announce: 'announce',
  languageServer: 'languageServer',
  valuesAcrossRanks: 'valuesAcrossRanks',
} as const;

export const Command = {
  allThreads: 'dapMux.stacks.allThreads',
  array: 'dapMux.array',
  attach: 'dapMux.attach',
  breakpointAtStack: 'dapMux.stacks.breakpoint',
  cast: 'dapMux.cast',
  clearSearch: 'dapMux.clearSearch',
  compare: 'dapMux.compare',
  compareRow: 'dapMux.rank.compare',
  continueOnly: 'dapMux.continueOnly',
  copyAsCast: 'dapMux.copyAsCast',
  copyStackRanks: 'dapMux.stacks.copyRanks',
  copyWhyCommand: 'dapMux.why.copyCommand',
  doctor: 'dapMux.doctor',
  focus: 'dapMux.focus',
  focusOutlier: 'dapMux.focusOutlier',
  groupOfStack: 'dapMux.stacks.group',
  install: 'dapMux.install',
  launch: 'dapMux.launch',
  listRanks: 'dapMux.listRanks',
  mesh: 'dapMux.mesh',
  mainThreads: 'dapMux.stacks.mainThreads',
  newGroup: 'dapMux.newGroup',
  nextClass: 'dapMux.nextClass',
  openRow: 'dapMux.rank.open',
  openStack: 'dapMux.stacks.open',
  openStackRow: 'dapMux.stacks.openRow',
  openSuspect: 'dapMux.why.open',
  pickView: 'dapMux.pickView',
  previousClass: 'dapMux.previousClass',
  refreshStacks: 'dapMux.stacks.refresh',
  releaseRanks: 'dapMux.releaseRanks',
  releaseRow: 'dapMux.rank.release',
  runAllHere: 'dapMux.runAllHere',
  scopeAll: 'dapMux.scope.all',
  scopeOf: 'dapMux.scope.', // of the hue: dapMux.scope.1 to dapMux.scope.6
  scopeRow: 'dapMux.scope.row',
  searchRanks: 'dapMux.searchRanks',
  setScope: 'dapMux.setScope',
  walkthrough: 'dapMux.walkthrough',
  watch: 'dapMux.watch',
  why: 'dapMux.why',
} as const;

/** A command of the language server: a quick fix has written a path mapping into launch.json. */
export const MAPPING_WRITTEN = 'dap-mux.mappingWritten'; // dap_mux/frontends/lsp/problems.py

/** Another one: the command of its code lenses. */
export const RUN_ALL_HERE = 'dap-mux.runAllHere'; // dap_mux/frontends/lsp/features.py

/** Commands of rows of the Ranks view: `dapMux.rank.continue` and so on. */
export const RANK_COMMAND_PREFIX = 'dapMux.rank.';

export const View = {
  array: 'dapMux.array',
  ranks: 'dapMux.ranks',
  stacks: 'dapMux.stacks',
  compare: 'dapMux.compare',
  mesh: 'dapMux.mesh',
  scope: 'dapMux.scope',
  scopeHue: 'dapMux.scopeHue',
  watch: 'dapMux.watch',
  why: 'dapMux.why',
} as const;

/** Keys for `when` clauses. */
export const ContextKey = {
  active: 'dapMux.active',
  allThreads: 'dapMux.allThreads',
  debugpyHasRanks: 'dapMux.debugpyHasRanks',
  installed: 'dapMux.installed',
  languageServer: 'dapMux.languageServer',
  searching: 'dapMux.searching',
} as const;

/** Tells jobs in this window's terminals where to announce themselves. */
export const ANNOUNCE_VARIABLE = 'DAP_MUX_ANNOUNCE'; // dap_mux/session
