import { type ApiClient, type ApiIncident, apiIncident, listAll } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { paint, print } from '../terminal.ts'
import { commandLine } from '../where.ts'
import { printRemark } from './say.ts'

/**
 * Says of every alert that still fires who has it, at the end of a show. Throws when one fires on a closed incident that no person has
 * and nothing watches: that is a wrong end of every show.
 */
export async function printFiringAlerts(api: ApiClient): Promise<void> {
  const incidents = await listAll(api, '/api/v1/incidents?limit=100', apiIncident, 100)
  const firing = incidents.filter(({ alerts }) => alerts.firing > 0)
  if (firing.length === 0) return print(`\n  ${paint('green', 'No alert fires.')}`)
  print(`\n  ${paint('bold', 'What still fires, and who has it')}`)
  for (const incident of firing) printRemark(describeFiring(incident))
  if (firing.some(({ category, type }) => category === 'mitigated' && type === 'host_down')) {
    printRemark(`Mark the host as repaired:  ${commandLine('lab heal')}`)
  }
  const unwatched = firing.filter((incident) => describeHolder(incident) === null)
  if (unwatched.length === 0) return
  const named = unwatched.map(({ id, type }) => `${type} of ${id}`).join(', ')
  throw new CommandFailed('unresolved', `An alert fires that no person has and nothing watches: ${named}.`)
}

function describeFiring(incident: ApiIncident): string {
  const { type, resource, id } = incident
  return `${inert(type)} on ${inert(resource?.id ?? id)} fires on: ${describeHolder(incident) ?? 'no person has it'}.`
}

/** Who answers for an incident whose alert fires; null where no one does. */
export function describeHolder(incident: ApiIncident): string | null {
  const { status, outcome, category, closedBy, watchUntil, cancelledUntil, owner, keptReason } = incident
  if (owner) return `${inert(owner.name)} has it`
  switch (status) {
    case 'open':
      return keptReason === null ? 'it waits for its investigation' : `it is left to people (${inert(keptReason)})`
    case 'investigating':
      return 'it is being investigated'
    case 'awaiting_approval':
      return 'it waits for a decision of a person'
    case 'escalated':
      return `${category ? category.replaceAll('_', ' ') : 'handed over'}, people have it`
    case 'cancelled':
      return cancelledUntil === null ? null : `a person put it off until ${cancelledUntil}`
    case 'resolved':
      if (outcome === 'expected') return 'expected, by the mark of a person'
      if (closedBy === 'person') return 'a person closed it, and is reminded'
      return watchUntil === null ? null : `repaired, watched until it ends`
  }
}
