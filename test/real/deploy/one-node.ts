import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { parse, stringify } from 'yaml'
import { type ClusterApi, connectCluster } from '../../../lab/kubernetes/api.ts'
import { makeAuthority } from '../../../lab/kubernetes/certificates.ts'
import { cgroupOf, cgroupRoots, removeCluster } from '../../../lab/kubernetes/drawer.ts'
import { makeImages } from '../../../lab/kubernetes/images.ts'
import {
  apiServerNames,
  clusterPlan,
  controlAddress,
  kubeconfig,
  nodeFiles,
  serviceNetwork,
} from '../../../lab/kubernetes/layout.ts'
import { eventually, freePort } from '../../support/directory.ts'
import { findProgram } from '../kinds.ts'
import { relayTo } from '../relay.ts'

export type OneNode = {
  /** A process of its network. */
  pid: number
  /** An address of the node, as pods reach it. */
  address: string
  api: ClusterApi
  /** A file by which kubectl gets in. */
  kubeconfig: string
  /** kubectl with these words. Rejects with what it said where it fails. */
  kubectl(...words: string[]): Promise<string>
  /** The last lines that a program of the cluster wrote. */
  log(program: string): string
  stop(): Promise<void>
}

const node = 'node-1'

/**
 * A Kubernetes of one node as the lab's, with room for real images, with kube-proxy, so that
 * Services have addresses, and kube-router, which enforces network policies and does nothing else.
 * It lies in namespaces that end with it. `images`: archives for `ctr images import`.
 */
export async function startOneNode(place: string, images: readonly string[]): Promise<OneNode> {
  const directory = join(place, 'kubernetes')
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), text, { mode: 0o600 })
  }
  for (const name of ['log', 'images']) mkdirSync(join(directory, name), { recursive: true })
  makeImages(join(directory, 'images'))
  for (const [n, image] of images.entries()) copyFileSync(image, join(directory, 'images', `more-${n}.tar`))
  const cgroup = cgroupOf(place)
  for (const root of cgroupRoots()) mkdirSync(join(root, cgroup, node), { recursive: true })
  const admin = await writeFiles(cgroup, write, images.length)
  const inside = startInside(directory)
  const ended = once(inside, 'exit')
  const log = (program: string) => {
    const file = join(directory, 'log', `${program}.log`)
    return existsSync(file) ? readFileSync(file, 'utf8').slice(-3_000) : ''
  }
  await eventually('the cluster to have started its programs', () => {
    if (inside.exitCode !== null) throw new Error(`the cluster ended: ${log('inside')}`)
    return existsSync(join(directory, 'api.sock'))
  })
  const port = await freePort()
  const relay = relayTo({ path: join(directory, 'api.sock') }).listen(port, '127.0.0.1')
  const file = join(place, 'kubeconfig')
  const text = admin(`https://127.0.0.1:${port}`)
  writeFileSync(file, text, { mode: 0o600 })
  const api = connectCluster(text)
  const kubectl = async (...words: string[]) => {
    const all = ['--kubeconfig', file, '--cache-dir', join(place, 'kubectl'), ...words]
    return (await promisify(execFile)(findProgram('kubectl')!, all, { maxBuffer: 16 * 1024 * 1024 })).stdout
  }
  const stop = async () => {
    relay.close()
    inside.kill('SIGKILL')
    await ended
    removeCluster(place)
  }
  await eventually('the node to be ready', async () => {
    if (inside.exitCode !== null) throw new Error(`the cluster ended: ${log('inside')}`)
    const nodes = await api.list('/api/v1/nodes').catch(() => [])
    return nodes.some(({ status }) =>
      status.conditions.some(({ type, status: is }: Record<string, string>) => type === 'Ready' && is === 'True'),
    )
  })
  return { pid: inside.pid as number, address: controlAddress, api, kubeconfig: file, kubectl, log, stop }
}

/**
 * Writes what the programs of the cluster read. Answers the admin's kubeconfig, for an address of
 * the API server.
 */
async function writeFiles(cgroup: string, write: (name: string, text: string) => void, images: number) {
  const authority = await makeAuthority('one-node')
  const accounts = generateKeyPairSync('rsa', { modulusLength: 2048 })
  write('pki/accounts.key', accounts.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
  write('pki/ca.crt', authority.certificate)
  const server = await authority.issue('CN=kube-apiserver,O=system:masters', apiServerNames)
  write('pki/apiserver.crt', server.certificate)
  write('pki/apiserver.key', server.key)
  const subjects = {
    'kube-controller-manager': 'CN=system:kube-controller-manager',
    'kube-scheduler': 'CN=system:kube-scheduler',
    'kube-proxy': 'CN=system:kube-proxy',
    'kube-router': 'CN=kube-router,O=system:masters',
    [node]: `CN=system:node:${node},O=system:nodes`,
  }
  for (const [name, subject] of Object.entries(subjects)) {
    const certificate = await authority.issue(subject, {})
    write(`${name}.kubeconfig`, kubeconfig('https://127.0.0.1:6443', authority.certificate, name, certificate))
  }
  for (const [name, text] of Object.entries(nodeFiles(node, cgroup)))
    write(name, name.endsWith('kubelet.yaml') ? stringify({ ...parse(text), ...roomy }) : text)
  write('plan.json', JSON.stringify(planOf(images)))
  const admin = await authority.issue('CN=admin,O=system:masters', {})
  return (url: string) => kubeconfig(url, authority.certificate, 'admin', admin)
}

/** The disk is this machine's: a kubelet that thinks it full would remove images and pods. */
const roomy = {
  clusterDNS: [controlAddress],
  evictionHard: { 'memory.available': '50Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
  imageGCHighThresholdPercent: 100,
}

function planOf(images: number) {
  const plan = clusterPlan()
  const isOther = (text: string) => text.includes('node-2')
  // Packets from pod to pod over the bridge pass the rules too; it ends until its node is there.
  const filtered = 'echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables; until "$0" "$@"; do sleep 1; done'
  const policies = {
    name: 'kube-router',
    program: 'sh',
    args: [
      ...['-c', filtered, findProgram('kube-router')!, '--kubeconfig=kube-router.kubeconfig'],
      ...['--run-router=false', '--run-service-proxy=false', '--run-firewall=true'],
      ...[`--hostname-override=${node}`, `--service-cluster-ip-range=${serviceNetwork}`, '--metrics-port=0'],
    ],
  }
  const noSysctl = ['--conntrack-max-per-core=0', '--conntrack-tcp-timeout-established=0s']
  const proxy = {
    name: 'kube-proxy',
    program: findProgram('kube-proxy')!,
    args: [
      ...['--kubeconfig=kube-proxy.kubeconfig', `--hostname-override=${node}`, '--proxy-mode=iptables'],
      ...[...noSysctl, '--conntrack-tcp-timeout-close-wait=0s', '--metrics-bind-address=127.0.0.1:10249'],
    ],
  }
  return {
    ...plan,
    networks: plan.networks.slice(0, 1),
    disks: [],
    processes: [...plan.processes.filter(({ name }) => !isOther(name)), proxy, policies],
    sockets: plan.sockets.filter((each) => !isOther(each)),
    images: ['images/pause-1.tar', ...Array.from({ length: images }, (_, n) => `images/more-${n}.tar`)],
  }
}

/**
 * A shell is the first process in there: it takes leave of those that lost their parent, which Node
 * does not.
 */
function startInside(directory: string): ChildProcess {
  const log = openSync(join(directory, 'log/inside.log'), 'a')
  const first = 'exec 3<&0; "$@" <&3 & wait $!'
  const program = join(import.meta.dirname, '../../../lab/node/cluster-inside.ts')
  const namespaces = ['--mount', '--net', '--pid', '--ipc', '--propagation', 'private', '--fork', '--kill-child']
  // It ends with this process, also where that is killed.
  const words = ['--pdeathsig', 'KILL', 'unshare', ...namespaces, '--mount-proc', 'sh', '-c', first, 'sh']
  return spawn('setpriv', [...words, process.execPath, program], {
    cwd: directory,
    stdio: ['pipe', log, log],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
  })
}
