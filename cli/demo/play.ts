import { setTimeout as delay } from 'node:timers/promises'
import type { IncidentEvent } from '../../domain/event.ts'
import { closedStatuses } from '../../domain/incident.ts'
import type { LabClient } from '../../lab/client.ts'
import type { Verdict } from '../../lab/oracle.ts'
import type { Fault, FaultName } from '../../lab/state.ts'
import { type AnIncident, anIncident, type Core, listAll, readIncident } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'
import { followIncident } from '../stream.ts'

export type World = { api: Core; lab: LabClient; signal?: AbortSignal }

/** What a play lets its audience know, in this order. */
export type Audience = {
  broken(fault: Fault): void
  found(incident: AnIncident): void
  /** Nothing was claimed after `claimPatienceMs`. */
  unclaimed(): void
  event(event: IncidentEvent, sinceIso: string): void | Promise<void>
}

type Played = { incident: AnIncident; verdict: Verdict; sinceIso: string }

/** The prober looks every second and wants to see a fault twice; a replica must first fall behind. */
const alertWithinMs = 60_000
const claimPatienceMs = 5_000

/** Breaks something, follows the incident that comes of it to its end, and asks the oracle. Nothing is healed. */
export async function play(world: World, fault: FaultName, target: string, audience: Audience): Promise<Played> {
  const { api, lab, signal } = world
  const broken = await lab.break(fault, target)
  audience.broken(broken)
  const found = await incidentOf(api, broken, signal)
  audience.found(found)
  const patience = setTimeout(audience.unclaimed, claimPatienceMs)
  try {
    for await (const event of followIncident(api, found.id, { signal })) {
      if (event.kind !== 'alert_received') clearTimeout(patience)
      await audience.event(event, broken.at)
    }
  } finally {
    clearTimeout(patience)
  }
  signal?.throwIfAborted()
  return { incident: await readIncident(api, found.id), verdict: await askOracle(lab, broken), sinceIso: broken.at }
}

/** A repaired replica may still be reading its backlog when the incident closes: one second look. */
async function askOracle(lab: LabClient, { fault, target }: Fault): Promise<Verdict> {
  const verdict = await lab.oracle(fault, target)
  if (verdict.healthy) return verdict
  await delay(3_000)
  return lab.oracle(fault, target)
}

/** The incident that this fault's alert opened, or joined. */
async function incidentOf(api: Core, fault: Fault, signal?: AbortSignal): Promise<AnIncident> {
  const until = Date.now() + alertWithinMs
  while (Date.now() < until) {
    const newest = await listAll(api, '/api/v1/incidents?limit=50', anIncident, 50)
    // The first of several: the others follow it.
    const found = newest.findLast((incident) => isAbout(incident, fault))
    if (found) return found
    await delay(300, undefined, { signal })
  }
  const all = await listAll(api, '/api/v1/incidents?limit=50', anIncident, 50)
  const handedOver = all.find(({ status, resource }) => status === 'escalated' && resource?.id === fault.on)
  throw new CommandFailed(
    'timeout',
    handedOver
      ? `${handedOver.id} about ${fault.on} was handed to a person, and takes what fires again within half an hour. Break another one with --target, or: nightshift incidents investigate ${handedOver.id}`
      : `No incident about ${fault.on} after ${alertWithinMs / 1000} s. The log of the lab (.nightshift/logs/lab.log) tells whether its alert was refused.`,
  )
}

function isAbout(incident: AnIncident, fault: Fault): boolean {
  const names = [fault.on, fault.target, ...fault.hosts]
  const named = incident.resource
    ? names.includes(incident.resource.id)
    : names.some((name) => incident.title.includes(name))
  const isNew = Date.parse(incident.createdAt) >= Date.parse(fault.at) - 1_000
  return named && (isNew || !closedStatuses.includes(incident.status))
}
