import { setTimeout as delay } from 'node:timers/promises'
import { formatSpan } from '../../domain/format.ts'
import { closedStatuses } from '../../domain/incident.ts'
import type { LabClient } from '../../lab/client.ts'
import { withoutEnds } from '../../lab/conditions.ts'
import { isAboutClusterFault, isClusterFault } from '../../lab/kubernetes/faults.ts'
import type { Fault, FaultName } from '../../lab/state.ts'
import type { ApiClient } from '../api.ts'
import { CommandFailed } from '../exit-codes.ts'
import { type ApiIncident, apiIncident, listAll } from '../read-api.ts'
import { faultRows } from './endings.ts'
import { listAlerts, type Waiting, waitingTimes } from './play.ts'

/**
 * The stage of a scenario: its faults, its target, and the objects that earlier faults affected.
 */
type PlayStage = { faults: FaultName[]; target: string; hit: string[] }

/**
 * Returns the shard of a node, because a convergence affects a complete shard: `node-web-osl-1a` is
 * part of `web-osl-1`.
 */
const shardOf = (id: string): string => /^node-(.+\d)[a-z]$/.exec(id)?.[1] ?? id

/** Whether an agent works on an incident. An incident that was left to people does not count. */
const isWorkedOn = ({ status, keptReason, owner }: ApiIncident): boolean =>
  !closedStatuses.includes(status) && !(status === 'open' && (keptReason !== null || owner !== null))

const areHosts = ({ faults }: PlayStage): boolean =>
  faults.some((fault) => ['host', 'rack'].includes(faultRows[fault].target))

const isThere = ({ target, hit }: PlayStage, id: string): boolean =>
  [target, ...hit].some((each) => shardOf(each) === shardOf(id))

/**
 * Whether an incident is about a stage of a scenario. A fault of hosts is about all hosts, because
 * VMs of one host may move to any other.
 */
const isAbout = (stage: PlayStage, { resource }: ApiIncident): boolean =>
  resource !== null &&
  (isThere(stage, resource.id) ||
    (areHosts(stage) && resource.kind === 'host') ||
    stage.faults.some((fault) => isClusterFault(fault) && isAboutClusterFault(resource.id, fault)))

const dayMs = 24 * 3_600_000

/**
 * Finds the first target without a fault, and without an incident of this alert today. Null if
 * every target has one. An alert gets three attempts a day, and two scenarios on one target would
 * repair each other's fault.
 */
export async function findFreshTarget(
  api: ApiClient,
  lab: LabClient,
  name: FaultName,
  targets: string[],
): Promise<string | null> {
  const [incidents, faults] = await Promise.all([
    listAll(api, `/api/v1/incidents?type=${faultRows[name].alert}&limit=200`, apiIncident, 1_000),
    lab.faults(),
  ])
  const taken = new Set(faults.map(({ on }) => on))
  for (const incident of incidents.filter(({ updatedAt }) => Date.parse(updatedAt) > Date.now() - dayMs)) {
    const id = incident.resource?.id
    if (id && targets.includes(id) && !taken.has(id) && (await isOfSender(api, incident, name))) taken.add(id)
  }
  return targets.find((target) => !taken.has(target)) ?? null
}

/** Whether the fault's sender sent an alert of this incident. Attempts are counted per sender. */
async function isOfSender(api: ApiClient, incident: ApiIncident, name: FaultName): Promise<boolean> {
  const sender = name === 'unended_alert' ? withoutEnds : undefined
  return (await listAlerts(api, incident)).some(({ labels }) => labels.monitor === sender)
}

/**
 * Heals the faults that earlier scenarios left at the scenario's target, so that they do not
 * disturb the scenario. If no target was named, also heals the same faults at other targets.
 * Returns the objects that these faults affected.
 */
export async function clearStage(
  lab: LabClient,
  stage: PlayStage,
  { isNamed, tell }: { isNamed: boolean; tell: (text: string) => void },
): Promise<string[]> {
  const left = (await lab.faults()).filter(
    (fault) =>
      (!isNamed && stage.faults.includes(fault.fault)) ||
      [fault.on, fault.target].some((id) => isThere(stage, id)) ||
      (areHosts(stage) && fault.hosts.length > 0),
  )
  for (const { fault, on, target } of left) {
    const healed = await lab.heal(fault, target)
    if (healed > 0) tell(`Healed ${fault} on ${on}, which an earlier run left.`)
  }
  // Leaves out the same fault elsewhere, unless its alert is about a server that several accounts
  // use: this alert names neither account.
  const isOfAccount = ({ on, target }: Fault) =>
    isThere(stage, target) || areHosts(stage) || shardOf(on) !== shardOf(target)
  return left.filter(isOfAccount).flatMap(({ on, hosts }) => [on, ...hosts])
}

/**
 * Waits until no agent works at the scenario's target and no alert of its faults fires there. The
 * repair of an earlier scenario would end the next fault, and an alert that continues would not
 * begin again.
 */
export async function untilQuiet(api: ApiClient, stage: PlayStage, waiting: Waiting = {}): Promise<void> {
  const { signal, tell, withinMs, everyMs } = waitingTimes(waiting)
  const begun = Date.now()
  for (let told = 0; ; ) {
    const what = await findDisturbance(api, stage)
    if (what === null) return
    const now = Date.now()
    if (now >= begun + withinMs)
      throw new CommandFailed(
        'timeout',
        `Waited ${formatSpan(withinMs)} for ${what} to end, and broke nothing. Name another target with --target.`,
      )
    if (now >= told + everyMs) {
      tell(`Waiting for ${what} to end, so that it is not mistaken for the alert of this scenario.`)
      told = now
    }
    await delay(300, undefined, { signal })
  }
}

async function findDisturbance(api: ApiClient, stage: PlayStage): Promise<string | null> {
  const all = await listAll(api, '/api/v1/incidents?limit=200', apiIncident, 200)
  const there = all.filter((each) => isAbout(stage, each))
  const working = there.find(isWorkedOn)
  if (working) return `${working.id} (${working.type}, ${working.status}) about ${working.resource?.id}`
  const types = stage.faults.map((fault) => faultRows[fault].alert)
  for (const incident of there) {
    if (incident.alerts.firing === 0 || !types.includes(incident.type)) continue
    const alerts = await listAlerts(api, incident)
    // Skips an alert of the sender that never reports the end of an alert.
    if (alerts.some(({ status, labels }) => status === 'firing' && labels.monitor !== withoutEnds))
      return `the alert ${incident.type} about ${incident.resource?.id} (${incident.id})`
  }
  return null
}
