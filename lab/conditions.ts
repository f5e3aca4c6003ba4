import { createHash } from 'node:crypto'
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SentAttachment } from '../domain/attachment.ts'
import type { HostState } from '../domain/platform.ts'
import { startNode } from './lab.ts'
import { fullFraction, lookAtNode, type NodeLook, type PlatformView, usedBytes } from './look.ts'
import { excessOf, restartInPlace } from './metric-faults.ts'
import { desiredConfig, type Fault, type Lab, nodeDirectory, writeForNode } from './state.ts'
import type { NodePlan } from './topology.ts'
import { VmRefusal } from './vm.ts'

/** Milliseconds in which a node has to respond after it was continued or restarted. */
const answerMs = 5000

/**
 * Re-applies the desired state to a shard's nodes: continues stopped nodes, restarts dead nodes,
 * restores a drifted configuration, and clears `tmp/` and rotated logs of a full node. Never
 * deletes tenant data.
 */
export async function converge(lab: Lab, shard: string): Promise<string[]> {
  const changed: string[] = []
  // Converges the nodes in order, because a replica needs its primary.
  for (const node of lab.topology.nodes.filter((each) => each.shard === shard)) {
    changed.push(...(await convergeNode(lab, node)).map((what) => `${node.id}: ${what}`))
  }
  return changed
}

async function convergeNode(lab: Lab, plan: NodePlan): Promise<string[]> {
  const changed: string[] = []
  const before = await lookAtNode(lab, plan)
  // Restores the configuration first, so that the process starts with the right one.
  if (before.drift.length > 0) {
    writeForNode(lab, join(nodeDirectory(lab, plan.id), 'etc', 'config.json'), desiredConfig(lab, plan))
    changed.push('configuration restored')
  }
  if (usedBytes(before.bytes) >= fullFraction * plan.diskQuotaBytes) {
    const freed = clearDisk(nodeDirectory(lab, plan.id))
    if (freed > 0) changed.push(`cleared ${freed} bytes from tmp and rotated logs`)
  }
  if (before.process === 'stopped') {
    process.kill(lab.children.get(plan.id)!.pid, 'SIGCONT')
    changed.push('continued')
  } else if (before.process === 'gone') {
    await startNode(lab, plan.id)
    changed.push('restarted')
  } else if (!before.answers) {
    await restartInPlace(lab, plan.id)
    changed.push('did not answer, restarted')
  }
  for (const { did, run } of await excessOf(lab, plan)) {
    await run()
    changed.push(did)
  }
  await untilItAnswers(lab, plan)
  return changed
}

/** Lists for each node the changes that a convergence would make now. Changes nothing. */
export async function previewConverge(lab: Lab, shard: string): Promise<{ id: string; changes: string[] }[]> {
  const nodes = lab.topology.nodes.filter((each) => each.shard === shard)
  return Promise.all(nodes.map(async (plan) => ({ id: plan.id, changes: await changesOf(lab, plan) })))
}

/**
 * Lists the files, with sizes, that a convergence would clear on a shard's full nodes. Null for no
 * files.
 */
export async function listFilesToClear(lab: Lab, shard: string): Promise<SentAttachment | null> {
  const nodes = lab.topology.nodes.filter((each) => each.shard === shard)
  const found = await Promise.all(nodes.map((plan) => lookAtNode(lab, plan)))
  const full = nodes.filter((plan, index) => usedBytes(found[index]!.bytes) >= fullFraction * plan.diskQuotaBytes)
  const lines = full.flatMap(({ id }) => {
    const directory = nodeDirectory(lab, id)
    return clearable(directory).map((file) => `${statSync(file).size} bytes  ${id}:/${relative(directory, file)}`)
  })
  return lines.length === 0 ? null : { name: 'files to clear.txt', kind: 'text', text: `${lines.join('\n')}\n` }
}

async function changesOf(lab: Lab, plan: NodePlan): Promise<string[]> {
  const found = await lookAtNode(lab, plan)
  const freed =
    usedBytes(found.bytes) >= fullFraction * plan.diskQuotaBytes ? bytesOf(clearable(nodeDirectory(lab, plan.id))) : 0
  const started = {
    stopped: ['continue its process'],
    gone: ['restart its process'],
    running: found.answers ? [] : ['restart its process, which does not answer'],
  }[found.process]
  return [
    ...(found.drift.length > 0 ? [`restore its configuration (${found.drift.join(', ')})`] : []),
    ...(freed > 0 ? [`clear ${freed} bytes from tmp and rotated logs`] : []),
    ...started,
    ...(await excessOf(lab, plan)).map(({ would }) => would),
  ]
}

function clearDisk(directory: string): number {
  const files = clearable(directory)
  const freed = bytesOf(files)
  for (const file of files) rmSync(file, { recursive: true })
  return freed
}

const bytesOf = (files: readonly string[]): number => files.reduce((sum, file) => sum + statSync(file).size, 0)

/** Lists temporary files and rotated logs, never a tenant's files. */
function clearable(directory: string): string[] {
  const rotated = readdirSync(join(directory, 'logs')).filter((name) => /\.\d+$/.test(name))
  return [
    ...readdirSync(join(directory, 'tmp')).map((name) => join(directory, 'tmp', name)),
    ...rotated.map((name) => join(directory, 'logs', name)),
  ]
}

async function untilItAnswers(lab: Lab, plan: NodePlan): Promise<void> {
  const deadline = Date.now() + answerMs
  while (!(await lookAtNode(lab, plan)).answers) {
    if (Date.now() > deadline)
      throw new VmRefusal(`${plan.id} does not answer ${answerMs / 1000} s after it was converged`)
    await sleep(50)
  }
}

type ConditionLabels = Record<string, string>

/** One alert in Alertmanager's webhook format. */
export type WebhookAlert = {
  status: 'firing' | 'resolved'
  labels: ConditionLabels
  annotations: ConditionLabels
  startsAt: string
  endsAt: string
  generatorURL: string
  fingerprint: string
}

export type WebhookBody = {
  version: '4'
  receiver: string
  status: 'firing' | 'resolved'
  groupKey: string
  truncatedAlerts: number
  groupLabels: ConditionLabels
  commonLabels: ConditionLabels
  commonAnnotations: ConditionLabels
  externalURL: string
  alerts: WebhookAlert[]
}

/** The value of the label `monitor` of a job that reports only faults, never their end. */
export const withoutEnds = 'cron-check'

/** Go's zero time, which Alertmanager writes as the end of an alert that fires. */
export const neverEnded = '0001-01-01T00:00:00Z'

/** Computes an alert's id from its labels alone; the order of the labels does not matter. */
export function fingerprintOf(labels: ConditionLabels): string {
  const hash = createHash('sha256')
  for (const name of Object.keys(labels).sort()) hash.update(`${name}\u0000${labels[name]}\u0000`)
  return hash.digest('hex').slice(0, 16)
}

/**
 * Builds one notification of alerts with the same name. The notification is firing if any of the
 * alerts is firing.
 */
export function webhookBody(alertname: string, alerts: WebhookAlert[]): WebhookBody {
  return {
    receiver: 'nightshift',
    status: alerts.some(({ status }) => status === 'firing') ? 'firing' : 'resolved',
    alerts,
    groupLabels: { alertname },
    commonLabels: common(alerts.map(({ labels }) => labels)),
    commonAnnotations: common(alerts.map(({ annotations }) => annotations)),
    externalURL: 'http://lab.internal:9093',
    version: '4',
    groupKey: `{}:{alertname="${alertname}"}`,
    truncatedAlerts: 0,
  }
}

function common([first = {}, ...rest]: ConditionLabels[]): ConditionLabels {
  return Object.fromEntries(Object.entries(first).filter(([name, value]) => rest.every((each) => each[name] === value)))
}

/** A fault that is present now, in the form of an alert. */
export type LabCondition = { labels: ConditionLabels; annotations: ConditionLabels }

const severities = {
  replication_lag: 'critical',
  disk_pressure: 'warning',
  service_down: 'critical',
  host_down: 'critical',
  host_draining: 'warning',
  config_drift: 'info',
  runaway_process: 'warning',
  bad_deploy: 'critical',
  missing_package: 'warning',
  backup_running: 'info',
} as const
type AlertName = keyof typeof severities

/** CPU seconds that a normal short job uses at most; a job that uses more is a runaway. */
const runawayLimitSeconds = 1

/** Lists the nodes that are checked by the sender that never reports a fault's end. */
export function watchedOnce(faults: readonly Fault[]): ReadonlySet<string> {
  return new Set(faults.filter(({ fault }) => fault === 'unended_alert').map(({ on }) => on))
}

/**
 * Lists all faults in one view of the platform, in order. `once`: the nodes whose service is
 * reported by the sender that never reports an end.
 */
export function conditionsIn(
  { nodes, hosts, vms }: PlatformView,
  lagLimitSeconds: number,
  once: ReadonlySet<string> = new Set(),
): LabCondition[] {
  return [
    ...nodes.flatMap((node) =>
      ofNode(node, lagLimitSeconds).map((each) => (once.has(node.plan.id) ? toldOnce(each) : each)),
    ),
    ...hosts.flatMap((host) =>
      ofHost(
        host,
        vms.filter(({ on }) => on.includes(host.id)).map(({ plan }) => plan.id),
      ),
    ),
  ]
}

function toldOnce({ labels, annotations }: LabCondition): LabCondition {
  if (labels.alertname !== 'service_down') return { labels, annotations }
  return { labels: { ...labels, monitor: withoutEnds }, annotations }
}

function ofHost({ id, region, rack, state }: HostState, vms: string[]): LabCondition[] {
  const labels = { region, rack, host: id, instance: id }
  if (state === 'dead') return [condition('host_down', labels, `Host ${id} is down`, `${id} does not answer`)]
  // Ignores an empty draining host, because anybody may take the host down.
  if (state !== 'draining' || vms.length === 0) return []
  const summary = `Host ${id} is to be emptied for maintenance`
  return [condition('host_draining', labels, summary, `VMs still on the host: ${vms.join(', ')}`)]
}

function ofNode(look: NodeLook, lagLimitSeconds: number): LabCondition[] {
  const { plan, directory, process, answers, lagSeconds, bytes, drift, runawaySeconds, appLog, brokenRoutes } = look
  const { missingPackage, backupSince } = look
  const labels = { region: plan.region, shard: plan.shard, node: plan.id, instance: plan.id }
  const found: LabCondition[] = []
  if (lagSeconds !== null && lagSeconds > lagLimitSeconds) {
    found.push(
      condition(
        'replication_lag',
        labels,
        `Replication lag exceeded ${lagLimitSeconds} s on shard ${plan.shard}`,
        `replica ${plan.id} is ${Math.round(lagSeconds)} s behind its primary`,
      ),
    )
  }
  // Reports a stopped replica only by its lag, because a replica serves nobody. Any other node that
  // does not respond is a service that is down.
  if (process === 'gone' || (!answers && !(process === 'stopped' && plan.role === 'replica'))) {
    const what =
      process === 'running' ? 'does not answer' : `process is ${process === 'gone' ? 'not running' : process}`
    const told = condition('service_down', labels, `Node ${plan.id} is down`, `${plan.id}: ${what}`)
    found.push(appLog === null ? told : { ...told, annotations: { ...told.annotations, log: appLog } })
  }
  const used = usedBytes(bytes)
  if (used >= fullFraction * plan.diskQuotaBytes) {
    const percent = Math.round((used / plan.diskQuotaBytes) * 100)
    const description = `${plan.id} uses ${used} of ${plan.diskQuotaBytes} bytes (${percent} %)`
    const told = condition('disk_pressure', labels, `Disk of ${plan.id} is full`, description)
    found.push({ ...told, annotations: { ...told.annotations, mountpoint: directory } })
  }
  if (runawaySeconds !== null && runawaySeconds > runawayLimitSeconds) {
    const told = `report-export on ${plan.id} has used ${Math.round(runawaySeconds)} s of CPU`
    found.push(
      condition(
        'runaway_process',
        { ...labels, process: 'report-export' },
        `A process uses all CPU of ${plan.id}`,
        told,
      ),
    )
  }
  if (brokenRoutes !== null) {
    const told = `${brokenRoutes} is no JSON`
    found.push(
      condition('bad_deploy', { ...labels, file: brokenRoutes }, `A deploy broke the routes of ${plan.id}`, told),
    )
  }
  if (missingPackage !== null) {
    const told = `the newest release on ${plan.id} needs ${missingPackage}, which is not installed`
    found.push(condition('missing_package', { ...labels, package: missingPackage }, `${plan.id} lacks a package`, told))
  }
  if (backupSince !== null) {
    const told = `nothing is wrong; the backup runs since ${backupSince}`
    found.push(condition('backup_running', labels, `A backup of ${plan.id} runs`, told))
  }
  if (drift.length > 0) {
    found.push(condition('config_drift', labels, `Configuration of ${plan.id} drifted`, drift.join(', ')))
  }
  return found
}

export function condition(
  alertname: AlertName,
  labels: ConditionLabels,
  summary: string,
  description: string,
): LabCondition {
  return {
    labels: { alertname, severity: severities[alertname], ...labels },
    annotations: { summary, description, runbook_url: `https://runbooks.example.com/${alertname}` },
  }
}
