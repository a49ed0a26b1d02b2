import { describe, expect, test } from 'vitest';
import {
  currentNamespaceArgs,
  explainToolError,
  isForbidden,
  listNamespacesArgs,
  namesOf,
  noToolError,
  podItems,
  openCluster,
  listPodsArgs,
  toolsFor,
} from '../src/logic/pods';

describe('whether a pod is still to be chosen', () => {
  test.each([
    ['oc', { kind: 'oc' }],
    ['k8s:', { kind: 'k8s' }],
    ['oc:team/', { kind: 'oc', namespace: 'team' }],
    [{}, { kind: 'k8s' }],
    [{ kind: 'oc', ranks: 4 }, { kind: 'oc', ranks: 4 }],
    [{ kind: 'oc', namespace: 'team', pod: '' }, { kind: 'oc', namespace: 'team', pod: '' }],
  ])('%j: yes', (cluster, open) => {
    expect(openCluster(cluster)).toEqual(open);
  });

  test.each([
    'oc:team/trainer-0',
    'k8s:trainer-0',
    'k8s:job/train',
    'slurm:4711',
    'ssh:node1',
    'ocean',
    '',
    undefined,
    null,
    7,
    ['oc'],
    { kind: 'slurm' },
    { kind: 'oc', pod: 'trainer-0' },
    { job: 'train' },
    { selector: 'app=train' },
  ])('%j: no', (cluster) => {
    expect(openCluster(cluster)).toBeUndefined();
  });
});

test('the tool that the kind is named after comes first', () => {
  expect(toolsFor({ kind: 'oc' })).toEqual(['oc', 'kubectl']);
  expect(toolsFor({ kind: 'k8s' })).toEqual(['kubectl', 'oc']);
});

test('what they are asked names context and namespace', () => {
  const open = { kind: 'oc', namespace: 'team', context: 'prod' } as const;
  expect(listNamespacesArgs('oc', open)).toEqual(['get', 'projects', '-o', 'name', '--context', 'prod']);
  expect(listNamespacesArgs('kubectl', { kind: 'oc' })).toEqual(['get', 'namespaces', '-o', 'name']);
  const pods = ['get', 'pods', '-o', 'json', '--namespace', 'team', '--context', 'prod'];
  expect(listPodsArgs(open)).toEqual(pods);
  expect(currentNamespaceArgs(open)).toContain('jsonpath={..namespace}');
});

test('names as both tools print them', () => {
  const printed = 'project.project.openshift.io/training\nnamespace/default\n\n';
  expect(namesOf(printed)).toEqual(['default', 'training']);
  expect(namesOf('')).toEqual([]);
});

test('jobs of several pods come first, then pods, those that run before others', () => {
  const pod = (name: string, phase: string, job?: string): unknown => ({
    metadata: { name, ...(job ? { labels: { 'batch.kubernetes.io/job-name': job } } : {}) },
    status: { phase },
  });
  const items = [
    pod('train-1', 'Pending', 'train'),
    pod('train-0', 'Running', 'train'),
    pod('old', 'Succeeded'),
    pod('one-0', 'Running', 'one'),
    pod('dev', 'Running'),
  ];
  expect(podItems(JSON.stringify({ items }))).toEqual([
    { label: 'job/train', description: 'all its 2 pods', attributes: { job: 'train' } },
    { label: 'dev', description: 'running', attributes: { pod: 'dev' } },
    { label: 'one-0', description: 'running', attributes: { pod: 'one-0' } },
    { label: 'train-0', description: 'running', attributes: { pod: 'train-0' } },
    { label: 'train-1', description: 'pending', attributes: { pod: 'train-1' } },
  ]);
});

test('jobs of operators are named with their kind', () => {
  const kubeflow = (name: string, operator: string): Record<string, string> => ({
    'training.kubeflow.org/job-name': name,
    'training.kubeflow.org/operator-name': operator,
  });
  const ofSet = { 'jobset.sigs.k8s.io/jobset-name': 'js', 'job-name': 'js-workers-0' };
  const all = [kubeflow('ddp', 'pytorchjob-controller'), kubeflow('mpi', 'mpi-operator'), ofSet];
  const items = all.flatMap((labels, number) =>
    [0, 1].map((index) => ({ metadata: { name: `p-${number}-${index}`, labels }, status: { phase: 'Running' } })),
  );
  const jobs = podItems(JSON.stringify({ items })).slice(0, all.length);
  expect(jobs.map(({ label }) => label)).toEqual(['pytorchjob/ddp', 'mpijob/mpi', 'jobset/js']);
  expect(jobs.map(({ attributes }) => attributes)).toEqual([
    { job: 'pytorchjob/ddp' },
    { job: 'mpijob/mpi' },
    { job: 'jobset/js' },
  ]);
});

describe('error messages', () => {
  test.each([
    ['oc', 'error: You must be logged in to the server (Unauthorized)', /oc is not logged in.*"oc login"/],
    ['kubectl', 'error: You must be logged in to the server', /kubectl is not logged in.*provider's login/],
    ['oc', 'error: Missing or incomplete configuration info.\n', /not logged in/],
    ['kubectl', 'E1 noise\nThe connection to the server x was refused', /cannot reach the cluster \(The conn/],
    ['kubectl', 'Unable to connect to the server: dial tcp: lookup x: no such host', /cannot reach/],
    ['kubectl', 'error: context "x" does not exist', /^kubectl: error: context "x" does not exist$/],
    ['oc', '', /failed with no error message/],
  ])('%s: %s', (tool, message, expected) => {
    expect(explainToolError(tool, message).message).toMatch(expected);
  });

  test('without either tool there is another way', () => {
    expect(noToolError(['oc', 'kubectl']).message).toMatch(/needs oc or kubectl in PATH.*"endpoints"/);
  });

  test('who may not list namespaces can still say one', () => {
    const said = 'Error from server (Forbidden): namespaces is forbidden: User "me" cannot list resource';
    expect(isForbidden(said)).toBe(true);
    expect(isForbidden('Unauthorized')).toBe(false);
  });
});
