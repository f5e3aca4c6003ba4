import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { readVariables } from '../../config/variables.ts'
import { isProgram } from '../monitoring.ts'

/**
 * Programs of the cluster, each with its Debian package; `built` means that `buildScript` builds
 * the program.
 */
const origins = {
  'kube-apiserver': 'built',
  'kube-controller-manager': 'built',
  'kube-scheduler': 'built',
  kubelet: 'built',
  kubectl: 'built',
  'kube-state-metrics': 'built',
  etcd: 'etcd-server',
  containerd: 'containerd',
  ctr: 'containerd',
  runc: 'runc',
  ip: 'iproute2',
  iptables: 'iptables',
  unshare: 'util-linux',
  busybox: 'busybox-static',
} as const
type ClusterProgram = keyof typeof origins

/** The directory of Debian's network plugins, which give pods their addresses. */
export const networkPlugins = '/usr/lib/cni'

const root = join(import.meta.dirname, '../..')
export const buildScript = join(import.meta.dirname, 'build')

/** Returns a program's path. Null if it is neither in KUBE_BIN nor built nor in the PATH. */
function findClusterProgram(name: ClusterProgram | 'go'): string | null {
  const { KUBE_BIN: named, PATH: path } = readVariables('KUBE_BIN', 'PATH')
  const places = (path || '/usr/bin').split(delimiter)
  const folders = [
    ...(named ? [named] : []),
    ...builtFolders(),
    ...places,
    '/usr/sbin',
    '/usr/bin',
    '/usr/local/go/bin',
  ]
  return folders.map((folder) => join(folder, name)).find(isProgram) ?? null
}

export function clusterProgram(name: ClusterProgram): string {
  const path = findClusterProgram(name)
  if (path === null) throw new Error(`this machine has no ${name}`)
  return path
}

/** Lists the folders of built programs, the newest version first. */
function builtFolders(): string[] {
  const folder = join(root, '.cache', 'kubernetes')
  try {
    const versions = readdirSync(folder).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
    return versions.map((version) => join(folder, version))
  } catch {
    return []
  }
}

/**
 * Reasons why a cluster cannot start on this machine. `toBuild`: programs that the build script has
 * to build. `problems`: other obstacles, with their remedies.
 */
type ClusterLack = { toBuild: string[]; problems: string[] }

export function whatClusterLacks(): ClusterLack {
  const missing = (Object.keys(origins) as ClusterProgram[]).filter((name) => findClusterProgram(name) === null)
  const toBuild = missing.filter((name) => origins[name] === 'built')
  const packages = new Set<string>(missing.map((name) => origins[name]).filter((origin) => origin !== 'built'))
  if (!isProgram(join(networkPlugins, 'bridge'))) packages.add('containernetworking-plugins')
  const busybox = findClusterProgram('busybox')
  // Requires a static busybox, because containers contain no shared libraries.
  if (busybox !== null && isLinked(busybox)) packages.add('busybox-static')
  const problems: string[] = []
  if (process.platform !== 'linux') problems.push('the Kubernetes of the lab needs Linux')
  else if (process.getuid?.() !== 0)
    problems.push('containers and namespaces need root: start Nightshift as root ("sudo npm start")')
  if (packages.size > 0)
    problems.push(`programs are missing on this machine: apt-get install ${[...packages].join(' ')}`)
  if (toBuild.length > 0 && findClusterProgram('go') === null) {
    problems.push(
      `no ${toBuild.join(', no ')}: install Go 1.24 or later and run lab/kubernetes/build (takes minutes), or set KUBE_BIN to a folder that has them`,
    )
  }
  return { toBuild, problems }
}

/** Describes in sentences why a cluster cannot start. Empty if it can start. */
export const describeLack = ({ toBuild, problems }: ClusterLack): string[] =>
  problems.length > 0 || toBuild.length === 0
    ? problems
    : [
        `no ${toBuild.join(', no ')}: run lab/kubernetes/build (takes minutes), or set KUBE_BIN to a folder that has them`,
      ]

/** Returns whether a program needs a loader and shared libraries, which a container lacks. */
function isLinked(path: string): boolean {
  const head = Buffer.alloc(4096)
  const fd = openSync(path, 'r')
  try {
    readSync(fd, head, 0, head.length, 0)
  } finally {
    closeSync(fd)
  }
  return head.includes('/ld-linux') || head.includes('/ld-musl')
}
