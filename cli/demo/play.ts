import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { IncidentEvent } from '../../domain/event.ts'
import { closedStatuses } from '../../domain/incident.ts'
import type { LabClient } from '../../lab/client.ts'
import type { Scenario, Verdict } from '../../lab/oracle.ts'
import type { Fault, FaultName } from '../../lab/state.ts'
import { type ApiClient, type ApiIncident, apiIncident, listAll, listEventsAfter, readIncident } from '../api.ts'
import { CommandFailed } from '../errors.ts'
import { alertTypes } from '../lab/faults.ts'
import { followIncident } from '../stream.ts'

export type World = { api: ApiClient; lab: LabClient; signal?: AbortSignal }

/** What a play lets its audience know, in this order. */
export type Audience = {
  broken(fault: Fault): void
  found(incident: ApiIncident): void
  /** Nothing was claimed after `claimPatienceMs`. */
  unclaimed(): void
  event(event: IncidentEvent, sinceIso: string): void | Promise<void>
  remark(text: string): void
}

const claimPatienceMs = 5_000

/** Breaks something, follows the incident that comes of it to its end, and asks the oracle. Nothing is healed. */
export async function play(
  world: World,
  fault: FaultName,
  target: string,
  audience: Audience,
): Promise<{ incident: ApiIncident; verdict: Verdict }> {
  const broken = await breakAndFind(world, fault, target, audience)
  const incident = await follow(world, broken, audience)
  return { incident, verdict: await askOracle(world, fault, target) }
}

/** What was broken, and the incident of it with the rows that it had before. */
type BrokenFault = { fault: Fault; incidentId: string; afterSeq: number }

export async function breakAndFind(
  { api, lab, signal }: World,
  name: FaultName,
  target: string,
  audience: Audience,
): Promise<BrokenFault> {
  const fault = await lab.break(name, target)
  audience.broken(fault)
  const incident = await findIncident(api, fault, signal)
  audience.found(incident)
  const earlier = (await listEventsAfter(api, incident.id)).filter(({ at }) => Date.parse(at) < Date.parse(fault.at))
  return { fault, incidentId: incident.id, afterSeq: earlier.at(-1)?.seq ?? 0 }
}

/** Tells every row of it until it is over; `isOver` says which end is meant, where it may be opened again. */
export async function follow(
  { api, signal }: World,
  { fault, incidentId, afterSeq }: BrokenFault,
  audience: Audience,
  isOver?: (incident: ApiIncident) => boolean,
): Promise<ApiIncident> {
  const patience = setTimeout(audience.unclaimed, claimPatienceMs)
  try {
    for await (const event of followIncident(api, incidentId, { signal, afterSeq, isOver })) {
      if (event.kind !== 'alert_received') clearTimeout(patience)
      await audience.event(event, fault.at)
    }
  } finally {
    clearTimeout(patience)
  }
  signal?.throwIfAborted()
  return await readIncident(api, incidentId)
}

/** A repaired replica may still be reading its backlog when the incident closes: one second look. */
export async function askOracle({ lab }: World, scenario: Scenario, target: string): Promise<Verdict> {
  const verdict = await lab.oracle(scenario, target)
  if (verdict.healthy) return verdict
  await delay(3_000)
  return lab.oracle(scenario, target)
}

/** The prober looks every second and wants to see a fault twice; a replica must first fall behind. */
const alertTimeoutMs = 60_000
/** An alert that fired before does not begin again: then the incident that has it is taken. */
const newAlertTimeoutMs = 10_000

const surroundings = z.looseObject({
  alerts: z.array(z.looseObject({ startsAt: z.string(), status: z.string() })),
})

/**
 * The incident that this fault's alert opened, opened again, or joined: known by the alert's name, what it is about, and that it began
 * after the fault. Other incidents of the same place, and newer ones, are not meant.
 */
export async function findIncident(api: ApiClient, fault: Fault, signal?: AbortSignal): Promise<ApiIncident> {
  const type = alertTypes[fault.fault]
  if (type === null) throw new CommandFailed('usage', `${fault.fault} raises no alert, so there is nothing to follow.`)
  const begun = Date.now()
  while (Date.now() < begun + alertTimeoutMs) {
    const about = (await listIncidentsOfType(api, type)).filter((incident) => isAbout(incident, fault))
    // The oldest first: of several that one rack opened the others follow it.
    for (const incident of about.reverse()) {
      if (await hasNewAlert(api, incident, fault)) return await requireInvestigated(incident, fault)
    }
    const joined = Date.now() > begun + newAlertTimeoutMs ? await findFiringIncident(api, about) : null
    if (joined) return joined
    await delay(300, undefined, { signal })
  }
  throw new CommandFailed(
    'timeout',
    `No incident about ${fault.on} after ${alertTimeoutMs / 1000} s. The log of the lab (.nightshift/logs/lab.log) tells whether its alert was refused.`,
  )
}

/** An open one whose alert still fires: a fault that only repeats it begins no other. One that is open without an alert is not meant. */
async function findFiringIncident(api: ApiClient, about: readonly ApiIncident[]): Promise<ApiIncident | null> {
  for (const incident of about.filter(({ status }) => !closedStatuses.includes(status))) {
    if ((await listAlerts(api, incident)).some(({ status }) => status === 'firing')) return incident
  }
  return null
}

function listIncidentsOfType(api: ApiClient, type: string): Promise<ApiIncident[]> {
  return listAll(api, `/api/v1/incidents?type=${type}&limit=200`, apiIncident, 200)
}

function isAbout({ resource, title }: ApiIncident, { on, target, hosts }: Fault): boolean {
  const names = [on, target, ...hosts]
  // Whole names: node-1 is not meant where node-11 is named.
  const words = title.split(/[^\w.-]+/).map((word) => word.replace(/[.-]+$/, ''))
  return resource ? names.includes(resource.id) : names.some((name) => words.includes(name))
}

async function listAlerts(api: ApiClient, { id }: ApiIncident) {
  return surroundings.parse(await api.get(`/api/v1/incidents/${id}/surroundings`)).alerts
}

async function hasNewAlert(api: ApiClient, incident: ApiIncident, { at }: Fault): Promise<boolean> {
  const alerts = await listAlerts(api, incident)
  // Both are times of the lab's clock.
  return alerts.some(({ startsAt }) => Date.parse(startsAt) >= Date.parse(at))
}

/** An alert whose attempts of the day are used up is only counted: the wait for an incident would never end. */
async function requireInvestigated(incident: ApiIncident, { at, on }: Fault): Promise<ApiIncident> {
  const wasClosed = incident.closedAt !== null && Date.parse(incident.closedAt) < Date.parse(at)
  if (!wasClosed) return incident
  throw new CommandFailed(
    'unresolved',
    `${incident.id} about ${on} was handed to people after as many attempts as a day has: its alert is only counted. Break another one with --target, or: nightshift incidents investigate ${incident.id}`,
  )
}
