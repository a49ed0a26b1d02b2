/** Choosing a pod when the attribute `cluster` does not name one. Pure. */

import { type Attributes, NotReadyError } from './adapterLocation';
import { groupedBy } from './grouped';

/** A cluster whose pod is still to be chosen. `kind` says which tool is preferred. */
export interface OpenCluster extends Record<string, unknown> {
  kind: 'k8s' | 'oc';
  namespace?: string;
  context?: string;
}

/** An item to pick; `attributes` completes the cluster. */
export interface PodItem {
  label: string;
  description: string;
  attributes: Attributes;
}

const OPEN = /^(k8s|oc)(?::(?:([a-z0-9][a-z0-9.-]*)\/)?)?$/;

/** The cluster whose pod has to be chosen; undefined if it names its pods. */
export function openCluster(cluster: unknown): OpenCluster | undefined {
  const parts = typeof cluster === 'string' ? partsOf(cluster) : cluster;
  if (!isParts(parts)) return undefined;
  const { kind = 'k8s', pod, job, selector } = parts;
  if (kind !== 'k8s' && kind !== 'oc') return undefined;
  return [pod, job, selector].some(Boolean) ? undefined : { ...parts, kind };
}

/** `oc` and `oc:team/` name no pod. */
function partsOf(text: string): Attributes | undefined {
  const [, kind, namespace] = OPEN.exec(text) ?? [];
  return kind === undefined ? undefined : { kind, ...(namespace === undefined ? {} : { namespace }) };
}

function isParts(value: unknown): value is Attributes {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The programs to try, preferred first: each has its own configuration and login. */
export function toolsFor({ kind }: OpenCluster): ['oc', 'kubectl'] | ['kubectl', 'oc'] {
  return kind === 'oc' ? ['oc', 'kubectl'] : ['kubectl', 'oc'];
}

/** `oc` lists the projects that this user may see; listing namespaces needs more rights. */
export function listNamespacesArgs(tool: string, { context }: OpenCluster): string[] {
  return ['get', tool === 'oc' ? 'projects' : 'namespaces', '-o', 'name', ...at(context)];
}

/** Prints the current namespace, for users who may not list them. */
export function currentNamespaceArgs({ context }: OpenCluster): string[] {
  return ['config', 'view', '--minify', '-o', 'jsonpath={..namespace}', ...at(context)];
}

export function listPodsArgs({ context, namespace }: OpenCluster): string[] {
  return ['get', 'pods', '-o', 'json', ...(namespace ? ['--namespace', namespace] : []), ...at(context)];
}

function at(context: string | undefined): string[] {
  return context ? ['--context', context] : [];
}

/** Names from `namespace/training` or `project.project.openshift.io/training`, one a line. */
export function namesOf(printed: string): string[] {
  const names = printed.split('\n').map((line) => line.trim().replace(/^.*\//, ''));
  return names.filter((name) => name !== '').sort();
}

interface Pod {
  metadata: { name: string; labels?: Record<string, string> };
  status?: { phase?: string };
}

/** Jobs of several pods first, then the pods, running ones first. */
export function podItems(printed: string): PodItem[] {
  const pods = (JSON.parse(printed) as { items: Pod[] }).items;
  const alive = pods.filter(({ status }) => status?.phase === 'Running' || status?.phase === 'Pending');
  const whole = [...groupedBy(alive, jobOf)].flatMap(([job, { length }]) => (job && length > 1 ? [{ job, length }] : []));
  return [
    ...whole.map(({ job, length }) => ({
      label: job,
      description: `all its ${length} pods`,
      attributes: { job: job.replace(/^job\//, '') },
    })),
    ...[...alive].sort(runningFirst).map(({ metadata: { name }, status }) => ({
      label: name,
      description: (status?.phase ?? '').toLowerCase(),
      attributes: { pod: name },
    })),
  ];
}

/** How `cluster` names a pod's job: `job/train`, or `pytorchjob/train` for one of an operator. */
function jobOf({ metadata: { labels = {} } }: Pod): string | undefined {
  const jobSet = labels['jobset.sigs.k8s.io/jobset-name'];
  if (jobSet !== undefined) return `jobset/${jobSet}`;
  const replicas = labels['training.kubeflow.org/job-name'];
  const operator = /^(pytorch|mpi)/.exec(labels['training.kubeflow.org/operator-name'] ?? '');
  if (replicas !== undefined && operator) return `${operator[1]}job/${replicas}`;
  const job = labels['batch.kubernetes.io/job-name'] ?? labels['job-name'];
  return job === undefined ? undefined : `job/${job}`;
}

function runningFirst(one: Pod, other: Pod): number {
  const waits = (pod: Pod): number => (pod.status?.phase === 'Running' ? 0 : 1);
  return waits(one) - waits(other) || one.metadata.name.localeCompare(other.metadata.name);
}

/** Whether the user lacks the right to list this. */
export function isForbidden(message: string): boolean {
  return /forbidden|cannot list/i.test(message);
}

/** Explains a tool's error message, and what to do. */
export function explainToolError(tool: string, message: string): NotReadyError {
  const lastLine = message.trim().split('\n').at(-1)?.trim() ?? '';
  const login = tool === 'oc' ? '"oc login"' : 'your provider\'s login for kubectl';
  if (/unauthorized|must be logged in|provide credentials|missing or incomplete configuration/i.test(message)) {
    return new NotReadyError(`${tool} is not logged in (${lastLine}). Log in with ${login}, then try again`);
  }
  if (/refused|no such host|unable to connect|timed? ?out|no route/i.test(message)) {
    return new NotReadyError(`${tool} cannot reach the cluster (${lastLine}). Check your VPN and login`);
  }
  return new NotReadyError(`${tool}: ${lastLine || 'failed with no error message'}`);
}

/** No program was found. */
export function noToolError(tools: readonly string[]): NotReadyError {
  return new NotReadyError(
    `to choose a pod, dap-mux needs ${tools.join(' or ')} in PATH. Install one and log in, or set ` +
      '"endpoints" if the ranks can be reached without',
  );
}
