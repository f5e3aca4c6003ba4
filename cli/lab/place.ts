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

/** What a scenario is played on: its faults, its target, and what they hit before. */
type PlayStage = { faults: FaultName[]; target: string; hit: string[] }

/** A convergence is of a whole shard: `node-web-osl-1a` is of `web-osl-1`. */
const shardOf = (id: string): string => /^node-(.+\d)[a-z]$/.exec(id)?.[1] ?? id

/** Nobody here works on an incident that is left to people. */
const isWorkedOn = ({ status, keptReason, owner }: ApiIncident): boolean =>
  !closedStatuses.includes(status) && !(status === 'open' && (keptReason !== null || owner !== null))

const areHosts = ({ faults }: PlayStage): boolean =>
  faults.some((fault) => ['host', 'rack'].includes(faultRows[fault].target))

const isThere = ({ target, hit }: PlayStage, id: string): boolean =>
  [target, ...hit].some((each) => shardOf(each) === shardOf(id))

/** VMs of one host are brought to any other: a scenario of hosts is played on all of them. */
const isAbout = (stage: PlayStage, { resource }: ApiIncident): boolean =>
  resource !== null &&
  (isThere(stage, resource.id) ||
    (areHosts(stage) && resource.kind === 'host') ||
    stage.faults.some((fault) => isClusterFault(fault) && isAboutClusterFault(resource.id, fault)))

const dayMs = 24 * 3_600_000

/**
 * The first target without a fault and without an incident of this alert today; null when there is
 * none. An alert has three attempts a day, and two plays on one target would repair each other's
 * fault.
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

/** Another sender's alert of that name is another alert, with its own attempts. */
async function isOfSender(api: ApiClient, incident: ApiIncident, name: FaultName): Promise<boolean> {
  const sender = name === 'unended_alert' ? withoutEnds : undefined
  return (await listAlerts(api, incident)).some(({ labels }) => labels.monitor === sender)
}

/**
 * Takes back earlier plays' leftovers at this place, so that they are not measured; without a
 * place, the same fault anywhere. Answers what they hit.
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
  // The same fault elsewhere does not matter, unless an alert is about neither: one of a server
  // that several use.
  const isOfAccount = ({ on, target }: Fault) =>
    isThere(stage, target) || areHosts(stage) || shardOf(on) !== shardOf(target)
  return left.filter(isOfAccount).flatMap(({ on, hosts }) => [on, ...hosts])
}

/**
 * Waits until nobody works there and no alert of this type fires there: an earlier scenario's
 * repair would end the next one's fault, and an alert that goes on would not begin again.
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
        `Waited ${formatSpan(withinMs)} for ${what} to end, and broke nothing. Name another place with --target.`,
      )
    if (now >= told + everyMs) {
      tell(`Waiting for ${what} to end, so that it is not taken for this scenario.`)
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
    // A sender that never tells of an end is not waited for.
    if (alerts.some(({ status, labels }) => status === 'firing' && labels.monitor !== withoutEnds))
      return `the alert ${incident.type} about ${incident.resource?.id} (${incident.id})`
  }
  return null
}
