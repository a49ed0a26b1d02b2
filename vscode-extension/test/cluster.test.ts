import { describe, expect, test } from 'vitest';
import {
  currentWords,
  explained,
  isForbidden,
  namespaceWords,
  namesOf,
  noTool,
  offersOf,
  openCluster,
  podWords,
  toolsFor,
} from '../src/logic/cluster';

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
  expect(namespaceWords('oc', open)).toEqual(['get', 'projects', '-o', 'name', '--context', 'prod']);
  expect(namespaceWords('kubectl', { kind: 'oc' })).toEqual(['get', 'namespaces', '-o', 'name']);
  const pods = ['get', 'pods', '-o', 'json', '--namespace', 'team', '--context', 'prod'];
  expect(podWords(open)).toEqual(pods);
  expect(currentWords(open)).toContain('jsonpath={..namespace}');
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
  expect(offersOf(JSON.stringify({ items }))).toEqual([
    { label: 'job/train', description: 'all its 2 pods', chosen: { job: 'train' } },
    { label: 'dev', description: 'running', chosen: { pod: 'dev' } },
    { label: 'one-0', description: 'running', chosen: { pod: 'one-0' } },
    { label: 'train-0', description: 'running', chosen: { pod: 'train-0' } },
    { label: 'train-1', description: 'pending', chosen: { pod: 'train-1' } },
  ]);
});

describe('complaints', () => {
  test.each([
    ['oc', 'error: You must be logged in to the server (Unauthorized)', /oc is not logged in.*"oc login"/],
    ['kubectl', 'error: You must be logged in to the server', /kubectl is not logged in.*provider's login/],
    ['oc', 'error: Missing or incomplete configuration info.\n', /not logged in/],
    ['kubectl', 'E1 noise\nThe connection to the server x was refused', /does not reach the cluster \(The conn/],
    ['kubectl', 'Unable to connect to the server: dial tcp: lookup x: no such host', /does not reach/],
    ['kubectl', 'error: context "x" does not exist', /^kubectl: error: context "x" does not exist$/],
    ['oc', '', /did not say why/],
  ])('%s: %s', (tool, complaint, words) => {
    expect(explained(tool, complaint).message).toMatch(words);
  });

  test('without either tool there is another way', () => {
    expect(noTool(['oc', 'kubectl']).message).toMatch(/needs oc or kubectl in PATH.*"endpoints"/);
  });

  test('who may not list namespaces can still say one', () => {
    const said = 'Error from server (Forbidden): namespaces is forbidden: User "me" cannot list resource';
    expect(isForbidden(said)).toBe(true);
    expect(isForbidden('Unauthorized')).toBe(false);
  });
});
