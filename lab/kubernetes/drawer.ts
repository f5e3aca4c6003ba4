import { createHash, generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lab } from '../state.ts'
import { type ClusterApi, connectCluster } from './api.ts'
import { type ClusterAuthority, makeAuthority } from './certificates.ts'
import { makeImages } from './images.ts'
import { apiServerNames, clusterPlan, kubeconfig, nodeFiles, nodeNames } from './layout.ts'
import { clusterProgram, describeLack, whatClusterLacks } from './programs.ts'
import { openShop } from './shop.ts'

export type LabCluster = {
  url: string
  /** The path of a kubeconfig with all rights, readable only by the user who started the lab. */
  kubeconfig: string
  api: ClusterApi
  authority: ClusterAuthority
}

/** An order that the lab sends to the programs of the cluster. */
export type ClusterOrder =
  | { kind: 'signal'; process: string; signal: 'SIGSTOP' | 'SIGCONT' }
  | { kind: 'images' }
  | { kind: 'webhook'; certificate: string; key: string; host: string; port: number }
  | { kind: 'webhook_end' }

const clusterChild = 'cluster'

export function orderCluster(lab: Lab, order: ClusterOrder): void {
  lab.children.tell(clusterChild, { order })
}

const opening = new WeakMap<Lab, Promise<LabCluster>>()

/**
 * Starts a Kubernetes cluster of two nodes with a shop. A lab has one cluster, so a second call
 * returns the same cluster. If the cluster does not start, the promise rejects with the output of
 * its programs.
 */
export function openCluster(lab: Lab): Promise<LabCluster> {
  const begun = opening.get(lab) ?? open(lab)
  opening.set(lab, begun)
  begun.catch(async () => {
    opening.delete(lab)
    await lab.children.kill(clusterChild)
  })
  return begun
}

/** The most milliseconds that the start of a cluster takes on a busy machine. */
const startMs = 180_000

async function open(lab: Lab): Promise<LabCluster> {
  const lacks = describeLack(whatClusterLacks())
  if (lacks.length > 0) throw new Error(lacks.join('; '))
  const directory = clusterDirectory(lab.dir)
  removeCluster(lab.dir)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const cgroup = cgroupOf(lab.dir)
  for (const root of cgroupRoots()) mkdirSync(join(root, cgroup), { recursive: true })
  for (const root of cgroupRoots())
    for (const node of nodeNames) mkdirSync(join(root, cgroup, node), { recursive: true })
  const authority = await makeAuthority('lab-cluster')
  const write = (name: string, text: string) => {
    const file = join(directory, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text, { mode: 0o600 })
    return file
  }
  await writeFiles(authority, cgroup, write)
  for (const name of ['log', 'images']) mkdirSync(join(directory, name), { recursive: true })
  makeImages(join(directory, 'images'))
  const { port } = await lab.children.start(clusterChild, 'cluster.ts', directory, {
    account: null,
    unshare: clusterProgram('unshare'),
  })
  const url = `https://127.0.0.1:${port}`
  const admin = await authority.issue('CN=lab-admin,O=system:masters', {})
  const text = kubeconfig(url, authority.certificate, 'lab-admin', admin)
  const file = write('kubeconfig', text)
  const api = connectCluster(text)
  const cluster = { url, kubeconfig: file, api, authority }
  await untilSo(lab, 'the API server to be ready', async () => (await api.text('/readyz')) === 'ok')
  await untilSo(lab, 'both nodes to be ready', async () => {
    const nodes = await api.list('/api/v1/nodes')
    return nodes.length === nodeNames.length && nodes.every(isReady)
  })
  await openShop(api, (what, check) => untilSo(lab, what, check))
  return cluster
}

const isReady = (node: { status: { conditions: { type: string; status: string }[] } }): boolean =>
  node.status.conditions.some(({ type, status }) => type === 'Ready' && status === 'True')

async function writeFiles(
  authority: ClusterAuthority,
  cgroup: string,
  write: (name: string, text: string) => string,
): Promise<void> {
  const accounts = generateKeyPairSync('rsa', { modulusLength: 2048 })
  write('pki/accounts.key', accounts.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
  write('pki/ca.crt', authority.certificate)
  // Issues one certificate, which the API server presents to clients and to kubelets.
  const server = await authority.issue('CN=kube-apiserver,O=system:masters', apiServerNames)
  write('pki/apiserver.crt', server.certificate)
  write('pki/apiserver.key', server.key)
  const inside = async (name: string, subject: string) =>
    write(
      `${name}.kubeconfig`,
      kubeconfig('https://127.0.0.1:6443', authority.certificate, name, await authority.issue(subject, {})),
    )
  for (const name of ['kube-controller-manager', 'kube-scheduler']) await inside(name, `CN=system:${name}`)
  for (const node of nodeNames) {
    await inside(node, `CN=system:node:${node},O=system:nodes`)
    for (const [name, text] of Object.entries(nodeFiles(node, cgroup))) write(name, text)
  }
  write('plan.json', JSON.stringify(clusterPlan()))
}

/**
 * Waits for a condition of the cluster. Throws the last error if the cluster ended or the time is
 * over.
 */
async function untilSo(lab: Lab, what: string, check: () => Promise<boolean>, withinMs = startMs): Promise<void> {
  let said = ''
  for (const until = Date.now() + withinMs; Date.now() < until; await sleep(200)) {
    if (!lab.children.get(clusterChild))
      throw new Error(`the cluster ended while the lab waited for ${what}; log/cluster.log of the lab has the reason`)
    try {
      if (await check()) return
    } catch (error) {
      said = `: ${(error as Error).message}`
    }
  }
  throw new Error(`waited ${withinMs / 1000} s for ${what}${said}`)
}

const clusterDirectory = (dir: string): string => join(dir, 'kubernetes')

/** Returns the name of the cgroup of a lab's cluster, derived from the lab's directory. */
export const cgroupOf = (dir: string): string =>
  `nightshift-lab-${createHash('sha256').update(dir).digest('hex').slice(0, 8)}`

/** Lists the roots of cgroups: one root, or one for each controller. */
export function cgroupRoots(): string[] {
  const root = '/sys/fs/cgroup'
  if (existsSync(join(root, 'cgroup.controllers'))) return [root]
  return readdirSync(root, { withFileTypes: true })
    .filter((each) => each.isDirectory())
    .map(({ name }) => join(root, name))
}

/** Removes the remains of a lab's cluster after its processes ended: cgroups and files. */
export function removeCluster(dir: string): void {
  const directory = clusterDirectory(dir)
  rmSync(join(dir, 'cluster-credentials'), { recursive: true, force: true })
  if (!existsSync(directory)) return
  for (const root of cgroupRoots()) removeGroups(join(root, cgroupOf(dir)))
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
}

/**
 * Removes a cgroup with the cgroups inside it. Retries, because the last process needs a moment to
 * be fully gone.
 */
function removeGroups(path: string): void {
  if (!existsSync(path)) return
  for (const each of readdirSync(path, { withFileTypes: true }))
    if (each.isDirectory()) removeGroups(join(path, each.name))
  for (let n = 0; n < 40; n++) {
    try {
      rmdirSync(path)
      return
    } catch {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
    }
  }
}

/** Describes the cluster for the code that breaks, judges or reads it. */
export const describeCluster = ({ url, kubeconfig: file }: LabCluster) => ({
  url,
  kubeconfig: file,
  nodes: [...nodeNames],
})
