/** Chooses a namespace and a pod where a configuration leaves them open, by oc or kubectl. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import {
  currentWords,
  explained,
  isForbidden,
  namespaceWords,
  namesOf,
  noTool,
  type Offer,
  offersOf,
  type OpenCluster,
  openCluster,
  podWords,
  toolsFor,
} from './logic/cluster';
import { ConfigurationError } from './logic/reach';

const LIMIT = 30_000; // ms: a login by browser or plugin takes its time
const MUCH = 64 * 1024 * 1024; // bytes: all pods of a namespace
const execute = promisify(execFile);

/** What a program that could not do it has said. */
class Complaint extends Error {}

/**
 * The attribute `cluster`, complete. Undefined: the user has changed their mind. Throws
 * ConfigurationError where there is nothing to choose from.
 */
export async function completedCluster(cluster: unknown): Promise<unknown> {
  const open = openCluster(cluster);
  if (!open) return cluster;
  const tool = await firstOf(toolsFor(open));
  try {
    const namespace = open.namespace ?? (await chooseNamespace(tool, open));
    if (namespace === undefined) return undefined;
    const chosen = await choosePod(tool, { ...open, namespace });
    return chosen && { ...open, namespace, ...chosen.chosen };
  } catch (error) {
    throw error instanceof Complaint ? explained(tool, error.message) : error;
  }
}

async function firstOf(tools: readonly string[]): Promise<string> {
  for (const tool of tools) {
    try {
      await execute(tool, ['version', '--client'], { timeout: LIMIT });
      return tool;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return tool; // it is there, and will say what it lacks
    }
  }
  throw noTool(tools);
}

async function chooseNamespace(tool: string, open: OpenCluster): Promise<string | undefined> {
  const names = await namespaces(tool, open);
  const ignoreFocusOut = true;
  if (!names) {
    const value = (await ask(tool, currentWords(open))).trim();
    const prompt = 'You may not list the namespaces of this cluster: which one is it?';
    return vscode.window.showInputBox({ title: 'Namespace', prompt, value, ignoreFocusOut });
  }
  const [only] = names;
  if (names.length === 1) return only;
  const title = tool === 'oc' ? 'Project' : 'Namespace';
  return vscode.window.showQuickPick(names, { title, placeHolder: 'Where does the job run?', ignoreFocusOut });
}

/** Undefined where the user may not see them. */
async function namespaces(tool: string, open: OpenCluster): Promise<string[] | undefined> {
  try {
    return namesOf(await ask(tool, namespaceWords(tool, open)));
  } catch (error) {
    if (error instanceof Complaint && isForbidden(error.message)) return undefined;
    throw error;
  }
}

async function choosePod(tool: string, open: OpenCluster): Promise<Offer | undefined> {
  const offers = offersOf(await ask(tool, podWords(open)));
  if (!offers.length) {
    throw new ConfigurationError(`no pod runs in ${String(open.namespace)}: start the job, then try again`);
  }
  const placeHolder = 'Whose ranks do you want to debug?';
  const title = `Pod in ${String(open.namespace)}`;
  return vscode.window.showQuickPick(offers, { title, placeHolder, matchOnDescription: true, ignoreFocusOut: true });
}

async function ask(tool: string, words: string[]): Promise<string> {
  try {
    const running = execute(tool, words, { timeout: LIMIT, maxBuffer: MUCH });
    running.child.stdin?.end();
    return (await running).stdout;
  } catch (error) {
    const { stderr = '', message } = error as { stderr?: string; message: string };
    throw new Complaint(stderr.trim() ? stderr : message);
  }
}
