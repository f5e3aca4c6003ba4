import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { closedStatuses } from '../../domain/incident.ts'
import type { Fault, FaultName } from '../../lab/state.ts'
import { type ApiClient, type ApiIncident, apiIncident, listAll } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'

/** The prober looks every second and wants to see a fault twice; a replica must first fall behind. */
const alertTimeoutMs = 60_000
/** An alert that fired before does not begin again: then the incident that has it is taken. */
const newAlertTimeoutMs = 10_000

/** The alert that a fault raises; null where nothing does. */
export const alertTypes: Record<FaultName, string | null> = {
  replication_lag: 'replication_lag',
  disk_pressure: 'disk_pressure',
  disk_pressure_tenant: 'disk_pressure',
  full_log: 'disk_pressure',
  service_down: 'service_down',
  log_orders: 'service_down',
  port_squatter: 'service_down',
  relapse: 'service_down',
  unended_alert: 'service_down',
  config_drift: 'config_drift',
  runaway_process: 'runaway_process',
  bad_deploy: 'bad_deploy',
  missing_package: 'missing_package',
  backup_notice: 'backup_running',
  host_down: 'host_down',
  host_lost: 'host_down',
  rack_down: 'host_down',
  no_room: 'host_down',
  step_fails: 'host_down',
  drain: 'host_draining',
  link_down: null,
}

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
