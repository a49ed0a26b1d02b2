/** The attribute `cluster` where it leaves open which pod: what to ask, and of whom. Pure. */

import { type Attributes, ConfigurationError } from './reach';

/** Pods of a cluster of which one is still to be chosen. `kind`: whose tool is preferred. */
export interface OpenCluster extends Record<string, unknown> {
  kind: 'k8s' | 'oc';
  namespace?: string;
  context?: string;
}

/** A line of a list to choose from. `chosen`: what it adds to the cluster. */
export interface Offer {
  label: string;
  description: string;
  chosen: Attributes;
}

const OPEN = /^(k8s|oc)(?::(?:([a-z0-9][a-z0-9.-]*)\/)?)?$/;

/** The cluster whose pod has to be chosen; undefined where nothing is left open. */
export function openCluster(cluster: unknown): OpenCluster | undefined {
  const parts = typeof cluster === 'string' ? partsOf(cluster) : cluster;
  if (!isParts(parts)) return undefined;
  const { kind = 'k8s', pod, job, selector } = parts;
  if (kind !== 'k8s' && kind !== 'oc') return undefined;
  return [pod, job, selector].some(Boolean) ? undefined : { ...parts, kind };
}

/** `oc` and `oc:team/` name no pod yet. */
function partsOf(word: string): Attributes | undefined {
  const [, kind, namespace] = OPEN.exec(word) ?? [];
  return kind === undefined ? undefined : { kind, ...(namespace === undefined ? {} : { namespace }) };
}

function isParts(value: unknown): value is Attributes {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The programs to try, the preferred one first: each has its own configuration and login. */
export function toolsFor({ kind }: OpenCluster): ['oc', 'kubectl'] | ['kubectl', 'oc'] {
  return kind === 'oc' ? ['oc', 'kubectl'] : ['kubectl', 'oc'];
}

/** `oc` knows the projects that this user may see; not everybody may list a cluster's namespaces. */
export function namespaceWords(tool: string, { context }: OpenCluster): string[] {
  return ['get', tool === 'oc' ? 'projects' : 'namespaces', '-o', 'name', ...at(context)];
}

/** Which namespace the user works in, for those who may not list them. */
export function currentWords({ context }: OpenCluster): string[] {
  return ['config', 'view', '--minify', '-o', 'jsonpath={..namespace}', ...at(context)];
}

export function podWords({ context, namespace }: OpenCluster): string[] {
  return ['get', 'pods', '-o', 'json', ...(namespace ? ['--namespace', namespace] : []), ...at(context)];
}

function at(context: string | undefined): string[] {
  return context ? ['--context', context] : [];
}

/** `namespace/training` and `project.project.openshift.io/training` are one name each. */
export function namesOf(printed: string): string[] {
  const names = printed.split('\n').map((line) => line.trim().replace(/^.*\//, ''));
  return names.filter((name) => name !== '').sort();
}

interface Pod {
  metadata: { name: string; labels?: Record<string, string> };
  status?: { phase?: string };
}

/** Jobs of several pods first, then the pods, those that run before all others. */
export function offersOf(printed: string): Offer[] {
  const pods = (JSON.parse(printed) as { items: Pod[] }).items;
  const alive = pods.filter(({ status }) => status?.phase === 'Running' || status?.phase === 'Pending');
  const jobs = new Map<string, Pod[]>();
  for (const pod of alive) {
    const job = jobOf(pod);
    if (job) jobs.set(job, [...(jobs.get(job) ?? []), pod]);
  }
  const whole = [...jobs].filter(([, members]) => members.length > 1);
  return [
    ...whole.map(([job, members]) => ({
      label: `job/${job}`,
      description: `all its ${members.length} pods`,
      chosen: { job },
    })),
    ...[...alive].sort(runningFirst).map(({ metadata: { name }, status }) => ({
      label: name,
      description: (status?.phase ?? '').toLowerCase(),
      chosen: { pod: name },
    })),
  ];
}

function jobOf({ metadata: { labels = {} } }: Pod): string | undefined {
  return labels['batch.kubernetes.io/job-name'] ?? labels['job-name'];
}

function runningFirst(one: Pod, other: Pod): number {
  const waits = (pod: Pod): number => (pod.status?.phase === 'Running' ? 0 : 1);
  return waits(one) - waits(other) || one.metadata.name.localeCompare(other.metadata.name);
}

/** Whether the user may not see this, and can still say it. */
export function isForbidden(complaint: string): boolean {
  return /forbidden|cannot list/i.test(complaint);
}

/** What a tool's complaint means for the user, and what helps. */
export function explained(tool: string, complaint: string): ConfigurationError {
  const said = complaint.trim().split('\n').at(-1)?.trim() ?? '';
  const login = tool === 'oc' ? '"oc login"' : 'your provider\'s login for kubectl';
  if (/unauthorized|must be logged in|provide credentials|missing or incomplete configuration/i.test(complaint)) {
    return new ConfigurationError(`${tool} is not logged in (${said}). Log in with ${login}, and start again`);
  }
  if (/refused|no such host|unable to connect|timed? ?out|no route/i.test(complaint)) {
    return new ConfigurationError(`${tool} does not reach the cluster (${said}). Is the VPN up, the login still good?`);
  }
  return new ConfigurationError(`${tool}: ${said || 'it failed and did not say why'}`);
}

/** Neither program is there. */
export function noTool(tools: readonly string[]): ConfigurationError {
  return new ConfigurationError(
    `to choose a pod, dap-mux needs ${tools.join(' or ')} in PATH. Install one and log in, or name the ` +
      'ranks by "endpoints" where they can be reached without',
  );
}
