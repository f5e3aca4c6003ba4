import { webcrypto, X509Certificate } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { stringify } from 'yaml'
import { readVariables } from '../config/variables.ts'
import { shipLogs } from './app-log.ts'
import { writeWhole } from './children.ts'
import { databaseNode, startDatabase } from './database.ts'
import { databaseRules } from './databases/rules.ts'
import { clusterRules } from './kubernetes/rules.ts'
import { rules } from './monitoring-rules.ts'
import { certificateFile } from './node/program.ts'
import { type Lab, nodeDirectory, writeForNode } from './state.ts'
import type { NodePlan } from './topology.ts'

const hourMs = 3_600_000
const usualHours = 90 * 24

const certificatePath = (lab: Lab, { id }: NodePlan): string => join(nodeDirectory(lab, id), certificateFile)

/**
 * Installs a self-signed certificate for a node's name. The certificate expires after `hours`
 * hours.
 */
export async function issueCertificate(lab: Lab, node: NodePlan, hours = usualHours): Promise<void> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, false, ['sign', 'verify'])
  // Loads x509 only here, because few labs issue a certificate. x509 needs `reflect-metadata` to be
  // loaded first.
  await import('reflect-metadata')
  const { X509CertificateGenerator } = await import('@peculiar/x509')
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=${node.id}.${node.region}.lab.internal`,
      notBefore: new Date(Date.now() - hourMs),
      notAfter: new Date(Date.now() + hours * hourMs),
      signingAlgorithm: algorithm,
      keys,
    },
    webcrypto,
  )
  writeForNode(lab, certificatePath(lab, node), `${certificate.toString('pem')}\n`)
}

/** Issues a certificate to a node that has none yet. */
async function ensureCertificate(lab: Lab, node: NodePlan): Promise<void> {
  if (!existsSync(certificatePath(lab, node))) await issueCertificate(lab, node)
}

/**
 * Returns when a node's certificate expires, in milliseconds; 0 if the certificate cannot be read.
 */
export function certificateEndMs(lab: Lab, node: NodePlan): number {
  try {
    return Date.parse(new X509Certificate(readFileSync(certificatePath(lab, node))).validTo)
  } catch {
    return 0
  }
}

const webNodes = ({ topology }: Lab) => topology.nodes.filter(({ role }) => role === 'web')

/**
 * Milliseconds between rounds of requests. In a round each tenant sends two requests to each web
 * node, of which one is a search.
 */
const everyMs = 250
/** Extra requests for a noisy tenant in each round. */
const noisyRequests = 20

/** Sends requests to the web nodes until the lab ends. Calls `onRound` before each round. */
function startTraffic(lab: Lab, onRound: () => void): void {
  setInterval(() => {
    onRound()
    for (const { id, shard } of webNodes(lab)) {
      const port = lab.children.get(id)?.port
      if (port === undefined) continue
      const tenants = lab.topology.shards.find((each) => each.id === shard)?.tenants ?? []
      for (const tenant of tenants) for (const path of ['/', '/search?q=a']) request(port, path, tenant)
      const noisy = lab.faults.find((each) => each.fault === 'noisy_neighbour' && each.on === id)
      const tenant = tenants.at(-1)
      if (noisy && tenant) for (let n = 0; n < noisyRequests; n++) request(port, '/', tenant)
    }
  }, everyMs).unref()
}

/** Sends a request and ignores the response, and the error of a node that is down. */
function request(port: number, path: string, host: string): void {
  const sent = get({ host: '127.0.0.1', port, path, agent: false, headers: { host }, timeout: 2_000 }, (answer) => {
    answer.resume()
    answer.on('error', () => undefined)
  })
  sent.on('timeout', () => sent.destroy())
  sent.on('error', () => undefined)
}

/**
 * A real Prometheus and Alertmanager for the web nodes, and, if installed, a VictoriaLogs for the
 * nodes' logs.
 */
export type Monitoring = { prometheusUrl: string; alertmanagerUrl: string; logsUrl: string | null }

/** Debian packages with the programs that monitoring needs. */
const packages = ['prometheus', 'prometheus-alertmanager', 'prometheus-node-exporter'] as const

export type Receiver = { url: string; token: string }

/** Lists missing programs of monitoring, without which no fault of metrics can be broken in. */
export function missingServers(): string[] {
  return packages.filter((name) => findServer(name) === null)
}

export const describeMissing = (missing: readonly string[]): string =>
  `this machine has no ${missing.join(', no ')}. On Debian, install them: apt-get install ${missing.join(' ')}`

/**
 * Finds VictoriaLogs by a variable or in the PATH. A person has to install VictoriaLogs, because no
 * package registry has it. Null if it is not found; logs are then read where they are written.
 */
export function findVictoriaLogs(): string | null {
  const { VICTORIA_LOGS: named } = readVariables('VICTORIA_LOGS')
  return named ? (isProgram(named) ? named : null) : findServer('victoria-logs')
}

function findServer(name: string): string | null {
  const places = (readVariables('PATH').PATH || '/usr/bin').split(delimiter).map((directory) => join(directory, name))
  return places.find(isProgram) ?? null
}

export function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const starting = new WeakMap<Lab, Promise<Monitoring>>()

/**
 * Starts the web nodes' monitoring, and traffic whose requests it counts. A lab has one monitoring.
 * The node exporter reports on the whole machine. Rejects if a server does not start.
 */
export function startMonitoring(lab: Lab, receiver: Receiver): Promise<Monitoring> {
  const begun = starting.get(lab) ?? start(lab, receiver)
  starting.set(lab, begun)
  begun.catch(() => starting.delete(lab))
  return begun
}

async function start(lab: Lab, receiver: Receiver): Promise<Monitoring> {
  const directory = join(lab.dir, 'monitoring')
  // Removes the series of an earlier start, because they belong to former processes.
  rmSync(directory, { recursive: true, force: true })
  // Closes the directory to nodes of another user, because it contains the token for alerts.
  mkdirSync(directory, { mode: 0o700 })
  const [prometheus, alertmanager, exporter] = [await freePort(), await freePort(), await freePort()]
  for (const node of webNodes(lab)) await ensureCertificate(lab, node)
  lab.database ??= await startDatabase(lab)
  writeWhole(join(directory, 'token'), receiver.token)
  writeFileSync(join(directory, 'alertmanager.yml'), stringify(alertmanagerConfig(receiver.url)))
  writeFileSync(join(directory, 'rules.yml'), stringify(rules))
  writeFileSync(join(directory, 'database-rules.yml'), stringify(databaseRules))
  writeFileSync(join(directory, 'cluster-rules.yml'), stringify(clusterRules))
  writeFileSync(join(directory, 'prometheus.yml'), stringify(prometheusConfig(lab, alertmanager, exporter)))
  writeTargets(lab, directory, '')
  const run = startServerIn(lab, directory)
  await run('prometheus-node-exporter', exporter, '/', [])
  await run('prometheus-alertmanager', alertmanager, '/-/ready', [
    '--config.file=alertmanager.yml',
    '--storage.path=alertmanager',
    '--cluster.listen-address=',
  ])
  await run('prometheus', prometheus, '/-/ready', [
    '--config.file=prometheus.yml',
    '--storage.tsdb.path=series',
    '--storage.tsdb.retention.time=6h',
  ])
  const logsUrl = await startLogs(lab, directory)
  let written = ''
  startTraffic(lab, () => {
    written = writeTargets(lab, directory, written)
  })
  return {
    prometheusUrl: `http://127.0.0.1:${prometheus}`,
    alertmanagerUrl: `http://127.0.0.1:${alertmanager}`,
    logsUrl,
  }
}

/** Starts VictoriaLogs, if installed, and ships the logs of all web nodes to it. */
async function startLogs(lab: Lab, directory: string): Promise<string | null> {
  const program = findVictoriaLogs()
  if (program === null) return null
  const port = await freePort()
  const args = ['-storageDataPath=logs', `-httpListenAddr=127.0.0.1:${port}`, '-retentionPeriod=1d']
  const server = { account: null, program, args, port, ready: '/health' }
  await lab.children.start('victoria-logs', 'server.ts', directory, server)
  const url = `http://127.0.0.1:${port}`
  shipLogs(
    lab,
    webNodes(lab).map((node) => ({ id: node.id, instance: instanceOf(node) })),
    url,
  )
  return url
}

/** Starts a monitoring server as the lab's own user, because only the nodes need another user. */
const startServerIn =
  (lab: Lab, directory: string) =>
  async (name: (typeof packages)[number], port: number, ready: string, args: string[]): Promise<void> => {
    await lab.children.start(name, 'server.ts', directory, {
      account: null,
      program: findServer(name),
      args: [...args, `--web.listen-address=127.0.0.1:${port}`],
      port,
      ready,
    })
  }

/** Returns the label `instance` of a node: its network name and its service's port. */
const instanceOf = ({ id, region }: { id: string; region: string }): string => `${id}.${region}.lab.internal:8080`

/** The file of the databases' scrape targets, which exists when the databases run. */
export const databaseTargetsFile = 'databases.json'
/** The file of the cluster's scrape targets, which exists when the cluster runs. */
export const clusterTargetsFile = 'cluster.json'

/**
 * Writes the scrape targets of the web nodes, whose ports change at every start. Returns the
 * written content.
 */
function writeTargets(lab: Lab, directory: string, written: string): string {
  const targets = webNodes(lab).flatMap((node) => {
    const child = lab.children.get(node.id)
    const checkout = join(lab.dir, 'nodes', node.id, 'site')
    return [{ targets: [`127.0.0.1:${child?.port ?? 1}`], labels: { instance: instanceOf(node), checkout } }]
  })
  const text = JSON.stringify(targets)
  if (text !== written) writeWhole(join(directory, 'targets.json'), text)
  return text
}

function prometheusConfig(lab: Lab, alertmanagerPort: number, exporterPort: number): object {
  const { id, region } = lab.topology.nodes.find((node) => node.id === databaseNode(lab)) as NodePlan
  const database = {
    targets: [`127.0.0.1:${lab.database?.exporterPort}`],
    labels: { instance: `${id}.${region}.lab.internal:5432` },
  }
  return {
    global: { scrape_interval: '2s', scrape_timeout: '2s', evaluation_interval: '1s' },
    rule_files: ['rules.yml', 'database-rules.yml', 'cluster-rules.yml'],
    alerting: { alertmanagers: [{ static_configs: [{ targets: [`127.0.0.1:${alertmanagerPort}`] }] }] },
    scrape_configs: [
      { job_name: 'web', file_sd_configs: [{ files: ['targets.json'], refresh_interval: '2s' }] },
      { job_name: 'node', static_configs: [{ targets: [`127.0.0.1:${exporterPort}`] }] },
      { job_name: 'postgres', static_configs: [database] },
      { job_name: 'databases', file_sd_configs: [{ files: [databaseTargetsFile], refresh_interval: '2s' }] },
      {
        job_name: 'kube-state-metrics',
        honor_labels: true,
        file_sd_configs: [{ files: [clusterTargetsFile], refresh_interval: '2s' }],
      },
    ],
  }
}

function alertmanagerConfig(url: string): object {
  const webhook = { url, http_config: { authorization: { credentials_file: 'token' } } }
  return {
    route: {
      receiver: 'nightshift',
      group_by: ['alertname', 'instance', 'namespace', 'node'],
      group_wait: '1s',
      group_interval: '2s',
      repeat_interval: '1h',
    },
    receivers: [{ name: 'nightshift', webhook_configs: [webhook] }],
  }
}

/** Finds a port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port is free')
  return address.port
}
