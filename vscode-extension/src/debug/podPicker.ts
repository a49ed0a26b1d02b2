/** Lets the user pick a namespace and a pod, with oc or kubectl, if a configuration names none. */

import * as vscode from 'vscode';
import { NotReadyError } from '../logic/adapterLocation';
import {
  currentNamespaceArgs,
  explainToolError,
  isForbidden,
  listNamespacesArgs,
  listPodsArgs,
  namesOf,
  noToolError,
  type OpenCluster,
  openCluster,
  type PodItem,
  podItems,
  toolsFor,
} from '../logic/pods';
import { run } from '../python';

const TOOL_TIMEOUT_MS = 30_000; // a login by browser or plugin takes time

/** The error message of a tool that failed. */
class ToolError extends Error {}

/**
 * Complete the attribute `cluster`; undefined if the user cancels. Throws NotReadyError if
 * there is nothing to choose from.
 */
export async function completeCluster(cluster: unknown): Promise<unknown> {
  const open = openCluster(cluster);
  if (!open) return cluster;
  const tool = await findTool(toolsFor(open));
  try {
    const namespace = open.namespace ?? (await pickNamespace(tool, open));
    if (namespace === undefined) return undefined;
    const pod = await pickPod(tool, { ...open, namespace });
    return pod && { ...open, namespace, ...pod.attributes };
  } catch (error) {
    throw error instanceof ToolError ? explainToolError(tool, error.message) : error;
  }
}

async function findTool(tools: readonly string[]): Promise<string> {
  for (const tool of tools) {
    try {
      await run([tool], ['version', '--client'], undefined, TOOL_TIMEOUT_MS);
      return tool;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return tool; // installed; its own error will say more
    }
  }
  throw noToolError(tools);
}

async function pickNamespace(tool: string, open: OpenCluster): Promise<string | undefined> {
  const names = await namespaces(tool, open);
  const ignoreFocusOut = true;
  if (!names) {
    const value = (await ask(tool, currentNamespaceArgs(open))).trim();
    const prompt = vscode.l10n.t('You may not list the namespaces of this cluster. Enter the namespace of the job.');
    return vscode.window.showInputBox({ title: vscode.l10n.t('Namespace'), prompt, value, ignoreFocusOut });
  }
  const [only] = names;
  if (names.length === 1) return only;
  const title = tool === 'oc' ? vscode.l10n.t('Project') : vscode.l10n.t('Namespace');
  const placeHolder = vscode.l10n.t('Where does the job run?');
  return vscode.window.showQuickPick(names, { title, placeHolder, ignoreFocusOut });
}

/** Undefined if the user may not list them. */
async function namespaces(tool: string, open: OpenCluster): Promise<string[] | undefined> {
  try {
    return namesOf(await ask(tool, listNamespacesArgs(tool, open)));
  } catch (error) {
    if (error instanceof ToolError && isForbidden(error.message)) return undefined;
    throw error;
  }
}

async function pickPod(tool: string, open: OpenCluster): Promise<PodItem | undefined> {
  const items = podItems(await ask(tool, listPodsArgs(open)));
  if (!items.length) {
    throw new NotReadyError(
      vscode.l10n.t('no pod is running in {0}: start the job, then try again', String(open.namespace)),
    );
  }
  const placeHolder = vscode.l10n.t('Whose ranks do you want to debug?');
  const title = vscode.l10n.t('Pod in {0}', String(open.namespace));
  return vscode.window.showQuickPick(items, { title, placeHolder, matchOnDescription: true, ignoreFocusOut: true });
}

async function ask(tool: string, args: string[]): Promise<string> {
  try {
    return await run([tool], args, undefined, TOOL_TIMEOUT_MS);
  } catch (error) {
    const { stderr = '', message } = error as { stderr?: string; message: string };
    throw new ToolError(stderr.trim() ? stderr : message);
  }
}
