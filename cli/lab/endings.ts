import type { IncidentEvent } from '../../domain/event.ts'
import { type FaultName, faultName } from '../../lab/state.ts'
import type { AnIncident } from '../core.ts'
import { endingWord, spaced } from '../told-ending.ts'

/** A fault that is followed to its end, or a course of several. */
export type ScenarioName = FaultName | 'after_escalated'

export const scenarioNames: ScenarioName[] = [...faultName.options, 'after_escalated']

type Ending = {
  status: 'resolved' | 'escalated'
  /** Outcomes of a resolution, categories of an escalation. */
  words: string[]
  /** What else the log has to show, as sentences of what is missing. */
  missing?: (incident: AnIncident, events: IncidentEvent[]) => string[]
}

const repaired: Ending = { status: 'resolved', words: ['repaired'] }
/** People have what no tool of ours may do, or what did not work. Nobody has to name a category for that. */
const handedOver: Ending = { status: 'escalated', words: ['no_tool', 'needs_approval', 'unknown', 'none'] }
const mitigated: Ending = {
  status: 'escalated',
  words: ['mitigated'],
  missing: ({ alerts }) => (alerts.firing > 0 ? [] : ['the alert of what is still broken fires']),
}

/** How a good investigation ends, by scenario: what is still broken is not repaired, and what still fires is not over. */
const endings: Record<ScenarioName, Ending> = {
  replication_lag: repaired,
  disk_pressure: repaired,
  disk_pressure_tenant: handedOver,
  service_down: repaired,
  config_drift: repaired,
  runaway_process: repaired,
  bad_deploy: repaired,
  log_orders: repaired,
  full_log: repaired,
  missing_package: repaired,
  port_squatter: repaired,
  host_down: mitigated,
  host_lost: mitigated,
  rack_down: handedOver,
  no_room: handedOver,
  step_fails: handedOver,
  drain: repaired,
  link_down: handedOver,
  relapse: {
    status: 'escalated',
    words: ['does_not_last'],
    missing: ({ resolution }, events) =>
      unless({
        'three attempts were made': claims(events) === 3,
        'the escalation quotes each of them': [1, 2, 3].every((n) => resolution?.includes(`Attempt ${n} of`)),
      }),
  },
  unended_alert: {
    status: 'escalated',
    words: ['alert_goes_on'],
    missing: (_, events) =>
      unless({
        'one attempt was made': claims(events) === 1,
        'people were told once that the repair held': notes(events, 'repair_confirmed') === 1,
      }),
  },
  backup_notice: {
    status: 'resolved',
    words: ['expected'],
    missing: (_, events) =>
      unless({
        'a run found no fault, and a person marked it': notes(events, 'expected_marked') > 0,
        'no run began after the mark': claims(since(events, 'expected_marked')) === 0,
      }),
  },
  after_escalated: {
    ...repaired,
    missing: (_, events) =>
      unless({
        'the attempt before it was handed over': events.some(({ kind }) => kind === 'escalated'),
        'another attempt was made': claims(events) >= 2,
      }),
  },
}

/** What is wrong with how an incident ended, as sentences; none where it ended as a good investigation of this scenario does. */
export function wrongsOfEnding(scenario: ScenarioName, incident: AnIncident, events: IncidentEvent[]): string[] {
  const { status, words, missing } = endings[scenario]
  const wanted = `it should have been ${status}: ${words.map(spaced).join(', ')}`
  if (incident.status !== status || !words.includes(endingWord(incident))) return [wanted]
  return (missing?.(incident, events) ?? []).map((what) => `this is not so: ${what}`)
}

function unless(facts: Record<string, boolean>): string[] {
  return Object.entries(facts).flatMap(([sentence, isSo]) => (isSo ? [] : [sentence]))
}

function claims(events: IncidentEvent[]): number {
  return events.filter(({ kind }) => kind === 'claimed').length
}

function notes(events: IncidentEvent[], code: string): number {
  return events.filter((event) => event.kind === 'noted' && event.metadata.code === code).length
}

function since(events: IncidentEvent[], code: string): IncidentEvent[] {
  return events.slice(events.findLastIndex((event) => event.kind === 'noted' && event.metadata.code === code) + 1)
}
