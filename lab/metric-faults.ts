import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { databaseNode, heldConnections, largestPool } from './database.ts'
import { isSearchLocked, lockSearch, unlockSearch } from './jobs.ts'
import { startNode } from './lab.ts'
import { certificateEndMs, issueCertificate } from './monitoring.ts'
import type { MetricFault } from './monitoring-rules.ts'
import { clockFile } from './node/program.ts'
import {
  type Fault,
  type Lab,
  nodeAt,
  nodeDirectory,
  runningPid,
  saveState,
  WrongTarget,
  writeForNode,
} from './state.ts'
import { deployFeature, hasSite, type NodePlan, renewSite, siteProblems } from './topology.ts'

/**
 * Defines faults that the platform does not see: the nodes are nominal, and only Prometheus'
 * metrics show the cause. Each fault breaks something for real. `conditions.ts` makes a converge
 * repair some of them.
 */

const leakBytesPerSecond = 4_000_000
/** Seconds by which a skewed clock is wrong. */
const offsetSeconds = 95
const endingHours = 20

type Broken = { on: string } & Partial<Pick<Fault, 'files' | 'hosts' | 'readOnly' | 'kept' | 'pids'>>

/** Breaks one fault in. Throws WrongTarget if no monitoring runs, or if the target does not fit. */
export async function breakMetric(lab: Lab, name: MetricFault, target: string): Promise<Broken> {
  if (!lab.monitoring) {
    throw new WrongTarget(
      `only metrics show ${name}, and no Prometheus runs yet: "nightshift lab --scenario ${name}" starts Prometheus and breaks it`,
    )
  }
  const node = nodeAt(lab, target, 'web')
  runningPid(lab, node.id)
  await breakers[name](lab, node)
  // Records the server as the alert does, and not the node that holds its connections.
  const on = name === 'connection_pool' ? databaseNode(lab) : node.id
  return { on, pids: lab.children.pids() }
}

const breakers: Record<MetricFault, (lab: Lab, node: NodePlan) => void | Promise<void>> = {
  slow_leak: (lab, { id }) => lab.children.tell(id, { leakBytesPerSecond }),
  error_rate: deploy,
  // Changes nothing: the traffic generator finds this fault in the list of faults and sends the
  // tenant's requests.
  noisy_neighbour: () => undefined,
  connection_pool: (lab, { id }) => startWorker(lab, id, hungryPool),
  clock_skew(lab, { id }) {
    writeForNode(lab, join(nodeDirectory(lab, id), clockFile), `${JSON.stringify({ offsetSeconds })}\n`)
  },
  certificate_ending: (lab, node) => issueCertificate(lab, node, endingHours),
  red_herring(lab, node) {
    deploy(lab, node)
    lab.children.tell(node.id, { reportShare: 0.6 })
  },
  missing_data: (lab, { id }) => lab.children.tell(id, { isMute: true }),
  stale_lock: (lab, { id }) => lockSearch(lab, id),
}

function deploy(lab: Lab, node: NodePlan): void {
  if (!hasSite(lab, node))
    throw new WrongTarget(`${node.id} has no Git checkout: this machine has no git, or git failed in its directory`)
  if (!deployFeature(lab, node)) throw new WrongTarget(`git commit failed on ${node.id}`)
}

export async function healMetric(lab: Lab, { fault, target }: Fault): Promise<void> {
  const node = nodeAt(lab, target, 'web')
  const on = node.id
  lab.children.tell(on, { leakBytesPerSecond: 0, reportShare: 0, isMute: false })
  if (fault === 'connection_pool') await lab.children.kill(workerOf(on))
  if (fault === 'clock_skew') rmSync(join(nodeDirectory(lab, on), clockFile), { force: true })
  if (fault === 'certificate_ending') await issueCertificate(lab, node)
  if (fault === 'error_rate' || fault === 'red_herring') renewSite(lab, node)
  if (fault === 'stale_lock') unlockSearch(lab, on)
  // Kills the process, because nothing else frees leaked memory.
  if (fault === 'slow_leak') await lab.children.kill(on)
}

type Check = { name: string; ok: boolean; detail: string }

/** Checks for a good end: the cause is gone, or, for a fault that needs a person, unchanged. */
export async function checkMetric(lab: Lab, fault: Fault & { fault: MetricFault }): Promise<Check[]> {
  const node = nodeAt(lab, fault.target, 'web')
  return await metricChecks[fault.fault](node, lab, fault)
}

type Checker = (node: NodePlan, lab: Lab, fault: Fault) => Check[] | Promise<Check[]>

const metricChecks: Record<MetricFault, Checker> = {
  slow_leak(node, lab) {
    const bytes = residentBytes(lab, node)
    return [
      check(`${node.id} uses less memory than its limit`, bytes > 0 && bytes < memoryLimitBytes, `${bytes} bytes`),
    ]
  },
  error_rate: (node, lab) => [isDeployUndone(node, lab)],
  noisy_neighbour: (node, lab, fault) => [isSameProcess(node, lab, fault)],
  async connection_pool(node, lab) {
    const held = await heldConnections(lab, node.id)
    return [
      check(
        `${node.id} holds no more connections than its pool is allowed`,
        held <= largestPool,
        `${held} of ${largestPool}`,
      ),
    ]
  },
  clock_skew(node, lab) {
    const seconds = clockOffset(lab, node)
    return [check(`the clock of ${node.id} is right`, seconds === 0, `${seconds} s off`)]
  },
  certificate_ending(node, lab) {
    const days = (certificateEndMs(lab, node) - Date.now()) / 86_400_000
    return [check(`the certificate of ${node.id} is valid for more than 30 days`, days > 30, `${days.toFixed(1)} days`)]
  },
  red_herring: (node, lab, fault) => [isDeployUndone(node, lab), isSameProcess(node, lab, fault)],
  missing_data: (node, lab, fault) => [isSameProcess(node, lab, fault)],
  stale_lock(node, lab, fault) {
    const isLocked = isSearchLocked(lab, node.id)
    const detail = isLocked ? 'locked' : 'not locked'
    return [check(`the search of ${node.id} is not locked`, !isLocked, detail), isSameProcess(node, lab, fault)]
  },
}

/**
 * Lists the faults of a node that a converge can repair, with their repairs. Empty if no monitoring
 * runs.
 */
export async function excessOf(lab: Lab, node: NodePlan): Promise<Remedy[]> {
  if (!lab.monitoring || node.role !== 'web') return []
  const bytes = residentBytes(lab, node)
  const held = await heldConnections(lab, node.id)
  const offset = clockOffset(lab, node)
  const restart = () => restartInPlace(lab, node.id)
  const restartWorker = async () => {
    await lab.children.kill(workerOf(node.id))
    await startWorker(lab, node.id, usualPool)
  }
  const memory = `${bytes} of ${memoryLimitBytes} bytes`
  const connections = `${held} of ${largestPool} connections`
  const stepClock = async () => rmSync(clockPath(lab, node), { force: true })
  const issue = () => issueCertificate(lab, node)
  const isEnding = certificateEndMs(lab, node) - Date.now() < renewBeforeMs
  return [
    bytes > memoryLimitBytes && remedy(['restart', 'restarted'], `its process, which held ${memory}`, restart),
    held > largestPool &&
      remedy(['restart', 'restarted'], `its report worker, which held ${connections}`, restartWorker),
    offset !== 0 && remedy(['step', 'stepped'], `its clock, which was ${offset} s off`, stepClock),
    isEnding && remedy(['renew', 'renewed'], 'its certificate', issue),
  ].filter((each) => each !== false)
}

/** Describes a repair twice: as planned work, and as finished work. */
function remedy([would, did]: [string, string], rest: string, run: () => Promise<void>): Remedy {
  const now = rest.replace('held', 'holds').replace('was', 'is')
  return { would: `${would} ${now}`, did: `${did} ${rest}`, run }
}

/**
 * Restarts a service that a convergence found faulty. Other faults may require that the service's
 * process remains: they then accept the new process, because this restart was right. A process that
 * ended for another reason counts as changed.
 */
export async function restartInPlace(lab: Lab, id: string): Promise<void> {
  const before = lab.children.get(id)?.pid
  await lab.children.kill(id)
  await startNode(lab, id)
  const after = lab.children.get(id)?.pid
  if (after === undefined) return
  for (const { pids } of lab.faults) if (pids[id] === before) pids[id] = after
  saveState(lab)
}

const workerOf = (node: string): string => `worker-${node}`
/** The connections of a normal worker, and of a worker that never releases any. */
const usualPool = 2
const hungryPool = 17

async function startWorker(lab: Lab, id: string, size: number): Promise<void> {
  if (!lab.database) throw new WrongTarget('the PostgreSQL of the lab does not run')
  if (lab.children.get(workerOf(id))) throw new WrongTarget(`the report worker of ${id} runs already`)
  await lab.children.start(workerOf(id), 'pool.ts', nodeDirectory(lab, id), { url: lab.database.url, size, name: id })
}

type Remedy = { would: string; did: string; run(): Promise<void> }

/** Memory limit of a web service in bytes. */
const memoryLimitBytes = 160_000_000
const renewBeforeMs = 3 * 86_400_000

const clockPath = (lab: Lab, { id }: NodePlan): string => join(nodeDirectory(lab, id), clockFile)

function clockOffset(lab: Lab, node: NodePlan): number {
  try {
    return Number((JSON.parse(readFileSync(clockPath(lab, node), 'utf8')) as { offsetSeconds: number }).offsetSeconds)
  } catch {
    return 0
  }
}

/** Returns the resident memory as the kernel reports it; 0 if the process is gone. */
function residentBytes(lab: Lab, { id }: NodePlan): number {
  const pid = lab.children.get(id)?.pid
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kib ?? 0) * 1_024
  } catch {
    return 0
  }
}

const check = (name: string, ok: boolean, detail: string): Check => ({ name, ok, detail })

function isDeployUndone(plan: NodePlan, lab: Lab): Check {
  const problems = siteProblems(lab, plan)
  const name = `the checkout of ${plan.id} is as desired and fully committed`
  return check(name, problems.length === 0, problems.join(', ') || 'no difference')
}

/** Checks that one process served all the time, because nobody had a reason to end it. */
export function isSameProcess({ id }: NodePlan, lab: Lab, { pids }: Fault): Check {
  const pid = lab.children.get(id)?.pid
  return check(`${id} was not restarted`, pid === pids[id], `process ${pid}, was ${pids[id]}`)
}
