import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** A program that a kind needs, and how it is had. */
type Program = {
  name: string
  /** Debian's package of it; without one it has to be built. */
  package?: string
  /**
   * Its package is downloaded with what it needs, and unpacked into `.cache`: it is not installed.
   */
  isUnpacked?: boolean
  /** How it says its version; without one the row does not tell it. */
  version?: string[]
}

type Kind = {
  about: string
  programs: Program[]
  /** It mounts, or starts what does. */
  needsRoot?: boolean
  /** What to do where a program has no package. */
  otherwise?: string
}

/**
 * What `npm run test:real -- <kind>` holds Nightshift against: programs of other people that no
 * package of npm brings.
 */
export const kinds: Record<string, Kind> = {
  engine: {
    about:
      'a container engine: containers that run, through the capabilities of a device, and an agent without rights beside them',
    needsRoot: true,
    programs: [
      { name: 'dockerd', package: 'docker.io', version: ['--version'] },
      { name: 'containerd', package: 'containerd', version: ['--version'] },
      { name: 'runc', package: 'runc', version: ['--version'] },
      { name: 'busybox', package: 'busybox-static', version: ['--help'] },
      { name: 'bwrap', package: 'bubblewrap', version: ['--version'] },
    ],
  },
  databases: {
    about:
      'PostgreSQL and MariaDB: what an unasked read by their clients may and may not do; the own database behind PgBouncer; the databases of the lab and their faults',
    programs: [
      { name: 'postgres', package: 'postgresql', version: ['--version'] },
      { name: 'psql', package: 'postgresql-client', version: ['--version'] },
      { name: 'pg_dumpall', package: 'postgresql-client', version: ['--version'] },
      { name: 'pgbouncer', package: 'pgbouncer', version: ['--version'] },
      { name: 'patroni', package: 'patroni', version: ['--version'] },
      { name: 'etcd', package: 'etcd-server', version: ['--version'] },
      { name: 'mariadbd', package: 'mariadb-server', version: ['--version'] },
      { name: 'mariadb', package: 'mariadb-client', version: ['--version'] },
      { name: 'mariadb-dump', package: 'mariadb-client', version: ['--version'] },
      { name: 'prometheus', package: 'prometheus', version: ['--version'] },
      { name: 'prometheus-alertmanager', package: 'prometheus-alertmanager' },
      { name: 'prometheus-node-exporter', package: 'prometheus-node-exporter' },
      { name: 'prometheus-postgres-exporter', package: 'prometheus-postgres-exporter' },
      { name: 'prometheus-mysqld-exporter', package: 'prometheus-mysqld-exporter' },
    ],
  },
  upgrade: {
    about: 'released builds, and the one before the newest migration, on their way to this one',
    programs: [
      { name: 'git', package: 'git', version: ['--version'] },
      { name: 'npm', package: 'npm', version: ['--version'] },
      { name: 'tar', package: 'tar' },
    ],
  },
  judge: {
    about: 'what the judge of commands lets run unasked, run in worlds that are thrown away',
    needsRoot: true,
    programs: [
      { name: 'bash', package: 'bash', version: ['--version'] },
      { name: 'perl', package: 'perl', version: ['-e', 'printf "%vd", $^V'] },
      { name: 'git', package: 'git' },
      { name: 'busybox', package: 'busybox-static', version: ['--help'] },
      { name: 'toybox', package: 'toybox', version: ['--version'] },
      { name: 'gawk', package: 'gawk', version: ['--version'] },
      { name: 'jq', package: 'jq', version: ['--version'] },
      { name: 'rg', package: 'ripgrep' },
      { name: 'xfs_repair', package: 'xfsprogs' },
      { name: 'redis-cli', package: 'redis-tools', version: ['--version'] },
      { name: 'psql', package: 'postgresql-client' },
      { name: 'mariadb', package: 'mariadb-client' },
      { name: 'sqlite3', package: 'sqlite3' },
      { name: 'lsof', package: 'lsof' },
      { name: 'pstree', package: 'psmisc' },
      { name: 'iostat', package: 'sysstat' },
      { name: 'smartctl', package: 'smartmontools' },
      { name: 'lvs', package: 'lvm2' },
      { name: 'dig', package: 'dnsutils' },
      { name: 'nc', package: 'netcat-openbsd' },
      { name: 'tcpdump', package: 'tcpdump' },
      { name: 'strace', package: 'strace' },
      { name: 'ethtool', package: 'ethtool' },
      { name: 'nft', package: 'nftables' },
      { name: 'iptables', package: 'iptables' },
      { name: 'unzip', package: 'unzip' },
      { name: 'zip', package: 'zip' },
      { name: 'zstd', package: 'zstd' },
      { name: 'logrotate', package: 'logrotate' },
      { name: 'sfdisk', package: 'fdisk' },
      { name: 'ping', package: 'iputils-ping' },
      { name: 'mtr', package: 'mtr-tiny' },
      { name: 'coredumpctl', package: 'systemd-coredump' },
    ],
  },
  package: {
    about: 'the archive of npm run package on a bare Debian root, by the words of docs/start/package.md',
    needsRoot: true,
    programs: [
      { name: 'debootstrap', package: 'debootstrap', version: ['--version'] },
      { name: 'openssl', package: 'openssl', version: ['version'] },
      { name: 'xz', package: 'xz-utils', version: ['--version'] },
      { name: 'strip', package: 'binutils', version: ['--version'] },
      { name: 'unshare', package: 'util-linux' },
    ],
  },
  zabbix: {
    about: 'a Zabbix server that sends problems and their ends by the media type of docs/how-to/connect-senders.md',
    needsRoot: true,
    programs: [
      // It says its version where its libraries are found: the test says it.
      { name: 'zabbix_server', package: 'zabbix-server-pgsql', isUnpacked: true },
      { name: 'postgres', package: 'postgresql', version: ['--version'] },
      { name: 'psql', package: 'postgresql-client' },
      { name: 'unshare', package: 'util-linux' },
    ],
  },
  kubernetes: {
    about: 'a Kubernetes of two nodes, as the lab starts it: its faults, what its API shows of them, and their alerts',
    needsRoot: true,
    programs: [
      { name: 'etcd', package: 'etcd-server', version: ['--version'] },
      { name: 'containerd', package: 'containerd', version: ['--version'] },
      { name: 'runc', package: 'runc', version: ['--version'] },
      { name: 'busybox', package: 'busybox-static', version: ['--help'] },
      { name: 'iptables', package: 'iptables' },
      { name: 'prometheus', package: 'prometheus', version: ['--version'] },
      { name: 'prometheus-alertmanager', package: 'prometheus-alertmanager' },
      { name: 'prometheus-node-exporter', package: 'prometheus-node-exporter' },
      { name: 'prometheus-postgres-exporter', package: 'prometheus-postgres-exporter' },
      { name: 'kube-apiserver', version: ['--version'] },
      { name: 'kubelet', version: ['--version'] },
      { name: 'kube-state-metrics', version: ['version'] },
    ],
    otherwise: 'lab/kubernetes/build (Go; minutes), or KUBE_BIN names the folder of what it builds',
  },
  compose: {
    about:
      'docker-compose.yml by Docker Compose itself, with each profile, on an engine without a registry: its upgrades, its stop, what is lost',
    needsRoot: true,
    programs: [
      { name: 'dockerd', package: 'docker.io', version: ['--version'] },
      { name: 'docker', package: 'docker.io' },
      { name: 'containerd', package: 'containerd', version: ['--version'] },
      { name: 'runc', package: 'runc', version: ['--version'] },
      { name: 'iptables', package: 'iptables' },
      { name: 'mmdebstrap', package: 'mmdebstrap' },
      { name: 'docker-compose', version: ['version'] },
      { name: 'temporal-server', version: ['--version'] },
      { name: 'temporal-sql-tool' },
      { name: "Temporal's schema" },
    ],
    otherwise:
      'build github.com/docker/compose/v2/cmd and cmd/server and cmd/tools/sql of go.temporal.io/server with Go, and name them and the folder schema of the second by the variables in brackets',
  },
  deploy: {
    about:
      'the manifests of deploy/kubernetes and the image of npm run package, on a Kubernetes of one node, by the words of docs/how-to/production.md',
    needsRoot: true,
    programs: [
      { name: 'etcd', package: 'etcd-server', version: ['--version'] },
      { name: 'containerd', package: 'containerd', version: ['--version'] },
      { name: 'runc', package: 'runc', version: ['--version'] },
      { name: 'busybox', package: 'busybox-static' },
      { name: 'iptables', package: 'iptables', version: ['--version'] },
      { name: 'mmdebstrap', package: 'mmdebstrap', version: ['--version'] },
      { name: 'openssl', package: 'openssl' },
      { name: 'kube-apiserver', version: ['--version'] },
      { name: 'kube-controller-manager' },
      { name: 'kube-scheduler' },
      { name: 'kube-proxy', version: ['--version'] },
      { name: 'kube-router', version: ['--version'] },
      { name: 'ipset', package: 'ipset', version: ['--version'] },
      { name: 'kubelet', version: ['--version'] },
      { name: 'kubectl' },
    ],
    otherwise: 'lab/kubernetes/build (Go; minutes), or KUBE_BIN names the folder of what it builds',
  },
}

const root = join(import.meta.dirname, '../..')

/** What nobody packages here: a variable names where it was built. */
const variables: Record<string, string> = {
  'docker-compose': 'COMPOSE_BIN',
  'temporal-server': 'TEMPORAL_SERVER_BIN',
  'temporal-sql-tool': 'TEMPORAL_SQL_TOOL',
  "Temporal's schema": 'TEMPORAL_SCHEMA',
}

/** Where the packages of a kind are unpacked. */
export const unpackedAt = (kind: string): string => join(root, '.cache', kind)

/**
 * Folders where programs are looked for: those that are named, what was built into .cache, PATH,
 * and where Debian puts servers.
 */
function folders(): string[] {
  const built = entries(join(root, '.cache/kubernetes'), '')
  const unpacked = Object.keys(kinds).map((kind) => join(unpackedAt(kind), 'usr/sbin'))
  const servers = entries('/usr/lib/postgresql', '').map((version) => join(version, 'bin'))
  const onPath = (process.env.PATH ?? '').split(':')
  return [process.env.KUBE_BIN ?? '', ...built, ...unpacked, ...servers, ...onPath, '/usr/sbin', '/sbin', '/usr/bin']
}

function entries(folder: string, prefix: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .map((name) => join(folder, name))
}

/**
 * The path of a program, or null. A distribution's own goes before what somebody put into
 * /usr/local.
 */
export function findProgram(name: string): string | null {
  const given = process.env[variables[name] ?? '']
  if (given) return isExecutable(given) ? given : null
  const isLocal = (folder: string) => Number(folder.startsWith('/usr/local'))
  const found = folders()
    .filter((folder) => folder !== '')
    .sort((a, b) => isLocal(a) - isLocal(b))
    .map((folder) => join(folder, name))
  return found.find(isExecutable) ?? null
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export const missingOf = (kind: string): Program[] =>
  (kinds[kind]?.programs ?? []).filter(({ name }) => findProgram(name) === null)

/** What to do about what is missing, in one sentence; null where nothing is. */
export function whyNot(kind: string): string | null {
  if (kinds[kind]?.needsRoot && process.getuid?.() !== 0) return 'it needs root'
  const missing = missingOf(kind)
  if (missing.length === 0) return null
  const packages = missing.flatMap((each) => each.package ?? [])
  const steps = [
    ...(packages.length > 0 ? [`apt-get install ${packages.join(' ')}`] : []),
    ...(missing.some((each) => !each.package) && kinds[kind]?.otherwise ? [kinds[kind].otherwise] : []),
  ]
  const named = missing.map(({ name }) => (variables[name] ? `${name} (${variables[name]})` : name))
  return `${named.join(', ')} missing: ${steps.join('; ')}`
}

/** `runc 1.1.5, …`: what was asked, as each says it of itself. */
export function versionsOf(kind: string): string {
  return (kinds[kind]?.programs ?? [])
    .flatMap(({ name, version }) => {
      const path = findProgram(name)
      return path === null || !version ? [] : [`${name} ${numberIn(path, version) ?? 'of no version'}`]
    })
    .join(', ')
}

function numberIn(path: string, args: string[]): string | null {
  try {
    const said = execFileSync(path, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    // MariaDB's client has a version of its own before that of its release.
    return /(?:Distrib )?(\d+\.\d+(?:\.\d+)?)/.exec(said.replace(/^.*Distrib/, 'Distrib'))?.[1] ?? null
  } catch {
    return null
  }
}
