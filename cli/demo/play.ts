import { setTimeout as delay } from 'node:timers/promises'
import type { IncidentEvent } from '../../domain/event.ts'
import type { LabClient } from '../../lab/client.ts'
import type { Scenario, Verdict } from '../../lab/oracle.ts'
import type { Fault, FaultName } from '../../lab/state.ts'
import { type ApiClient, type ApiIncident, listEventsAfter, readIncident } from '../core.ts'
import { followIncident } from '../stream.ts'
import { findIncident } from './find-incident.ts'

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
export type BrokenFault = { fault: Fault; incidentId: string; afterSeq: number }

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
