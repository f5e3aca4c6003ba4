import { chmodSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, truncateSync, writeSync } from 'node:fs'
import { join, relative } from 'node:path'
import { z } from 'zod'
import type { EffectAnswer } from '../domain/platform.ts'
import { processState } from './children.ts'
import { isDatabaseFault } from './databases/faults.ts'
import { healDatabase, inOrderOfHealing } from './databases/heal.ts'
import { endBackups } from './devices.ts'
import { healCluster } from './kubernetes/break.ts'
import { isClusterFault } from './kubernetes/faults.ts'
import { startHost, startNode } from './lab.ts'
import { portHolderOf, runawayOn } from './look.ts'
import { healMetric } from './metric-faults.ts'
import { isMetricFault } from './monitoring-rules.ts'
import { renewSystem } from './packages.ts'
import {
  configFile,
  desiredConfig,
  type Fault,
  type Lab,
  nodeDirectory,
  saveState,
  storageDirectory,
  writeForNode,
} from './state.ts'
import { renewSite } from './topology.ts'
import { returnVms, startVmsOf } from './vm.ts'

/**
 * Undoes every fault, starts stopped processes, and returns VMs to their first hosts, so that each
 * scenario begins in the same state. Returns the number of undone faults.
 */
export async function healAll(lab: Lab): Promise<number> {
  const healed = lab.faults.length
  lab.draining = []
  lab.ports = {}
  for (const fault of inOrderOfHealing(lab.faults)) await takeBack(lab, fault)
  for (const { id } of lab.topology.nodes) await bringUpNode(lab, id)
  for (const { id } of lab.topology.hosts) await bringUpHost(lab, id)
  await returnVms(lab)
  lab.faults = []
  saveState(lab)
  return healed
}

/**
 * Undoes one fault and restarts its processes, as a person would. Other faults remain. VMs return
 * to a host only when the host's last fault is undone, because until then the host may be broken.
 * Returns the number of undone faults.
 */
export async function healOne(lab: Lab, name: Fault['fault'], target: string | null): Promise<number> {
  const isMeant = ({ fault, ...at }: Fault) =>
    fault === name && (target === null || [at.target, at.on].includes(target))
  const meant = lab.faults.filter(isMeant)
  lab.faults = lab.faults.filter((fault) => !isMeant(fault))
  for (const fault of meant) {
    if (fault.fault === 'drain') lab.draining = lab.draining.filter((host) => host !== fault.on)
    if (fault.fault === 'port_squatter') delete lab.ports[fault.on]
    await takeBack(lab, fault).catch((error) => {
      lab.faults.push(fault)
      throw error
    })
    forgetFiles(lab, fault)
    if (lab.topology.nodes.some(({ id }) => id === fault.on)) await bringUpNode(lab, fault.on)
    for (const host of fault.hosts) await bringUpHost(lab, host)
  }
  const hasHosts = ({ hosts }: Fault) => hosts.length > 0
  if (meant.some(hasHosts) && !lab.faults.some(hasHosts)) await returnVms(lab)
  saveState(lab)
  return meant.length
}

/**
 * Removes a fault's files from the tenants' data that later faults recorded, because these files
 * must be gone after the undo.
 */
function forgetFiles(lab: Lab, { on, files }: Fault): void {
  const gone = files.map((file) => relative(lab.dir, join(nodeDirectory(lab, on), file)))
  for (const { tenantData } of lab.faults) for (const file of gone) delete tenantData[file]
}

async function takeBack(lab: Lab, whole: Fault): Promise<void> {
  const { fault, on, files, readOnly } = whole
  if (isMetricFault(fault)) return await healMetric(lab, whole)
  if (isDatabaseFault(fault)) return await healDatabase(lab, whole)
  if (isClusterFault(fault)) return await healCluster(lab, whole)
  if (fault === 'runaway_process') await lab.children.kill(runawayOn(on))
  if (fault === 'port_squatter') await lab.children.kill(portHolderOf(on))
  if (fault === 'backup_notice') await endBackups(lab, on)
  if (fault === 'link_down') lab.linksDown = lab.linksDown.filter((each) => each !== on)
  for (const vm of readOnly) chmodSync(storageDirectory(lab, vm), 0o755)
  for (const file of files) rmSync(join(nodeDirectory(lab, on), file), { force: true })
  const node = lab.topology.nodes.find(({ id }) => id === on)
  if (!node) return
  if (fault === 'bad_deploy') renewSite(lab, node)
  if (fault === 'missing_package') renewSystem(lab, node)
  writeForNode(lab, configFile(lab, node), desiredConfig(lab, node))
}

async function bringUpNode(lab: Lab, id: string): Promise<void> {
  const child = lab.children.get(id)
  if (!child) await startNode(lab, id)
  else if (processState(child.pid) === 'stopped') process.kill(child.pid, 'SIGCONT')
}

async function bringUpHost(lab: Lab, id: string): Promise<void> {
  if (lab.children.get(id)) await startVmsOf(lab, id)
  else await startHost(lab, id)
}

/**
 * A line in the journal of write calls. Lines of JSON are appended and synced. A write call is
 * `accepted` before any check, `started` just before it changes the platform, and then `done` or
 * `failed`. A repeated key returns the stored outcome.
 */
const line = z.object({
  at: z.iso.datetime(),
  key: z.string(),
  /** Method, path and body. All three must be equal in every request with this key. */
  request: z.string(),
  event: z.enum(['accepted', 'started', 'done', 'failed']),
  detail: z.string(),
  result: z.record(z.string(), z.unknown()),
  /** The changed objects. Null if unknown. Absent in older lines. */
  changed: z.array(z.string()).nullable().default(null),
})
type LabJournalLine = z.infer<typeof line>

export type EffectRecord = EffectAnswer & { request: string; runs: number }
export type LabOutcome = {
  status: 'done' | 'failed'
  detail: string
  result: Record<string, unknown>
  changed: string[] | null
}

export type LabJournal = {
  get(key: string): EffectRecord | undefined
  all(): EffectRecord[]
  /**
   * Runs `run` unless the key is known. Write calls about one object run one at a time, calls about
   * different objects in parallel. Returns null if the key belongs to another request. If `run`
   * throws, the write call has failed.
   */
  once(key: string, about: string, request: string, run: () => Promise<LabOutcome>): Promise<EffectRecord | null>
  /** Resolves when no write call is running. */
  idle(): Promise<void>
}

/**
 * Opens a journal. A write call that an earlier controller accepted and did not start becomes
 * `failed`, because it changed nothing. For a started write call, `whatBecameOf` returns the
 * outcome; if it returns null, the call stays `running`.
 */
export function openJournal(file: string, whatBecameOf: (request: string) => LabOutcome | null): LabJournal {
  const records = new Map<string, EffectRecord>()
  for (const each of readLines(file)) apply(records, each)
  const fd = openSync(file, 'a', 0o600)
  const underWay = new Map<string, Promise<EffectRecord>>()
  /** The end of the last write call about each object. */
  const last = new Map<string, Promise<unknown>>()

  function append(
    key: string,
    request: string,
    event: LabJournalLine['event'],
    detail: string,
    { result = {}, changed = null }: Partial<Pick<LabJournalLine, 'result' | 'changed'>> = {},
  ): void {
    const entry: LabJournalLine = { at: new Date().toISOString(), key, request, event, detail, result, changed }
    writeSync(fd, `${JSON.stringify(entry)}\n`)
    fsyncSync(fd)
    apply(records, entry)
  }

  for (const { key, request, status, runs } of [...records.values()]) {
    if (status !== 'running') continue
    if (runs === 0) append(key, request, 'failed', 'the controller ended before the action began')
    else {
      const outcome = whatBecameOf(request)
      if (outcome) append(key, request, outcome.status, outcome.detail, outcome)
    }
  }

  async function perform(key: string, request: string, run: () => Promise<LabOutcome>): Promise<EffectRecord> {
    append(key, request, 'started', 'under way')
    try {
      const { status, detail, ...more } = await run()
      append(key, request, status, detail, more)
    } catch (error) {
      append(key, request, 'failed', (error as Error).message)
    }
    return records.get(key)!
  }

  return {
    get: (key) => records.get(key),
    all: () => [...records.values()],
    async once(key, about, request, run) {
      const known = records.get(key)
      if (known && known.request !== request) return null
      if (known) return underWay.get(key) ?? known
      append(key, request, 'accepted', 'accepted')
      const turn = (last.get(about) ?? Promise.resolve())
        .then(() => perform(key, request, run))
        .finally(() => underWay.delete(key))
      underWay.set(key, turn)
      last.set(
        about,
        turn.catch(() => {}),
      )
      return turn
    },
    idle: async () => void (await Promise.all(last.values())),
  }
}

function apply(records: Map<string, EffectRecord>, line: LabJournalLine): void {
  const { key, request, event, detail, result, changed } = line
  const runs = (records.get(key)?.runs ?? 0) + (event === 'started' ? 1 : 0)
  const status = event === 'done' || event === 'failed' ? event : 'running'
  records.set(key, { key, request, status, detail, result, changed, runs })
}

function readLines(file: string): LabJournalLine[] {
  if (!existsSync(file)) return []
  const text = readFileSync(file, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  // Cuts off an incomplete line: a dying controller did not sync it, so no change depended on it.
  if (whole.length < text.length) truncateSync(file, Buffer.byteLength(whole))
  return whole
    .split('\n')
    .filter(Boolean)
    .map((each) => line.parse(JSON.parse(each)))
}

/**
 * Returns the outcome of a write call that was running when an earlier controller died with all
 * processes. An operation on a VM changes the VM's definition last, so the definition shows the
 * outcome. Returns null for a converge, whose outcome nothing shows.
 */
export function outcomeOfRequest({ placement }: Pick<Lab, 'placement'>, request: string): LabOutcome | null {
  const match = /^POST \/v1\/vms\/([^/]+)\/(start|migrate|stop|restart) (.*)$/.exec(request)
  if (!match) return null
  const [, vm, action, body] = match
  const { host, to } = JSON.parse(body!) as { host?: string; to?: string }
  // Describes the end of the call. Every VM has already started again together with the lab.
  const ended = (status: LabOutcome['status'], detail: string, result = {}): LabOutcome => ({
    status,
    detail,
    result,
    changed: status === 'done' ? [detail] : null,
  })
  if (action === 'stop') return ended('failed', `${vm} started again together with the lab`)
  if (action === 'restart') return ended('done', `${vm} started again together with the lab`, { vm, host })
  const target = action === 'start' ? host : to
  return placement[vm!] === target
    ? ended('done', `${vm} is defined on ${target}`, { vm, target })
    : ended('failed', `the controller ended before ${vm} was defined on ${target}`)
}
