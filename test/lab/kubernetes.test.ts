import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { faultRows } from '../../cli/lab/endings.ts'
import { breakCluster } from '../../lab/kubernetes/break.ts'
import { makeAuthority } from '../../lab/kubernetes/certificates.ts'
import { clusterFaultWork } from '../../lab/kubernetes/fault-work.ts'
import { clusterFaultRows, clusterFaults } from '../../lab/kubernetes/faults.ts'
import { kubeconfig } from '../../lab/kubernetes/layout.ts'
import { describeLack, whatClusterLacks } from '../../lab/kubernetes/programs.ts'
import { clusterRules } from '../../lab/kubernetes/rules.ts'
import { workloads } from '../../lab/kubernetes/shop.ts'
import { type Lab, readState } from '../../lab/state.ts'
import { topologyOf } from '../../lab/topology.ts'
import { temporaryDirectory } from '../support/directory.ts'

const rows = clusterFaults.map((name) => ({ name, ...clusterFaultRows[name] }))
const { KUBE_BIN, PATH } = process.env
let place: ReturnType<typeof temporaryDirectory>

beforeEach(() => {
  place = temporaryDirectory()
})
afterEach(() => {
  Object.assign(process.env, { PATH })
  if (KUBE_BIN === undefined) delete process.env.KUBE_BIN
  else process.env.KUBE_BIN = KUBE_BIN
  place.remove()
})

test('each of thirteen cluster faults has an alert among the rules, and ends with a person', () => {
  const rules = clusterRules.groups.flatMap((group) => group.rules.map(({ alert }) => alert))
  expect(rows).toHaveLength(13)
  expect(rows.filter(({ alert }) => !rules.includes(alert))).toEqual([])
  expect(rows.filter(({ name }) => faultRows[name].ending.status !== 'escalated')).toEqual([])
  expect(faultRows.k8s_crash_loop.alert).toBe('kube_pod_crash_looping')
})

test('a fault hits workloads of the shop, and no two rollouts hit the same', () => {
  const hits = clusterFaults.flatMap((name) => clusterFaultWork[name].hits)
  expect(hits.filter((name) => !(name in workloads))).toEqual([])
  // The node and what fills its disk are about one workload.
  expect(hits.filter((name, n) => hits.indexOf(name) !== n)).toEqual(['thumbnails'])
})

test('without a cluster a fault is refused with the command that starts one', async () => {
  await expect(breakCluster({ cluster: null } as unknown as Lab, 'k8s_quota', 'marketing/newsletter')).rejects.toThrow(
    /nightshift lab --kubernetes/,
  )
})

test('the cluster ends with the lab, and so do its faults', () => {
  const fault = (name: string) => ({
    fault: name,
    target: 'x',
    on: 'x',
    at: '2026-11-27T00:00:00Z',
    files: [],
    counters: {},
    tenantData: {},
  })
  const kept = { placement: {}, linksDown: [], faults: [fault('service_down'), fault('k8s_quota')] }
  writeFileSync(join(place.path, 'state.json'), JSON.stringify(kept))
  expect(readState(place.path, topologyOf(1)).faults.map((each) => each.fault)).toEqual(['service_down'])
})

test('a folder that KUBE_BIN names provides the programs, and a missing program is reported with the remedy', () => {
  const bin = join(place.path, 'bin')
  mkdirSync(bin)
  Object.assign(process.env, { KUBE_BIN: bin, PATH: bin })
  const built = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kubectl']
  for (const name of [...built, 'etcd', 'containerd', 'ctr', 'runc', 'ip', 'iptables', 'unshare', 'busybox']) {
    writeFileSync(join(bin, name), '#!/bin/sh\n')
    chmodSync(join(bin, name), 0o755)
  }
  // A build for this checkout may have brought it already.
  expect(whatClusterLacks().toBuild.filter((name) => built.includes(name))).toEqual([])
  expect(describeLack({ toBuild: ['kubelet'], problems: [] })).toEqual([
    expect.stringMatching(/^no kubelet: run lab\/kubernetes\/build .*KUBE_BIN/),
  ])
  expect(describeLack({ toBuild: ['kubelet'], problems: ['it needs root'] })).toEqual(['it needs root'])
  // It asks for a loader, and no container has one.
  writeFileSync(join(bin, 'busybox'), `\x7fELF${'\0'.repeat(500)}/lib64/ld-linux-x86-64.so.2`)
  expect(whatClusterLacks().problems.join()).toContain('busybox-static')
})

test('the certificates of a cluster are signed by its authority, and one can be expired', async () => {
  const { X509Certificate } = await import('node:crypto')
  const authority = await makeAuthority('a-test')
  const root = new X509Certificate(authority.certificate)
  const issued = await authority.issue('CN=a,O=system:masters', { names: ['a.svc'], addresses: ['127.0.0.1'] })
  const leaf = new X509Certificate(issued.certificate)
  expect(leaf.verify(root.publicKey)).toBe(true)
  expect([leaf.checkHost('a.svc'), leaf.checkIP('127.0.0.1'), leaf.subject]).toEqual([
    'a.svc',
    '127.0.0.1',
    'CN=a\nO=system:masters',
  ])
  const endsAt = new Date(Date.now() - 3_600_000)
  const ended = new X509Certificate((await authority.issue('CN=b', { endsAt })).certificate)
  expect(Math.abs(Date.parse(ended.validTo) - endsAt.getTime())).toBeLessThan(1_001)
  expect(Date.parse(ended.validFrom)).toBeLessThan(endsAt.getTime())
  const { users } = parse(kubeconfig('https://127.0.0.1:1', authority.certificate, 'a', issued))
  expect(Buffer.from(users[0].user['client-key-data'], 'base64').toString()).toBe(issued.key)
})
