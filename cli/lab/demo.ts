import type { Approval } from '../../domain/approval.ts'
import { withSpaces } from '../../domain/format.ts'
import { labClient } from '../../lab/client.ts'
import type { FaultName } from '../../lab/state.ts'
import type { LocalRun } from '../../start/run-file.ts'
import { type ApiClient, createApiClient } from '../api.ts'
import { commandLine } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { describeEnding } from '../incidents/follow.ts'
import { type ApiApproval, type ApiIncident, apiApproval, apiIncident, listAll } from '../read-api.ts'
import { formatMoment } from '../ui/table.ts'
import { inert, paint, print } from '../ui/terminal.ts'
import { formatVerdict } from './lab.ts'
import { untilQuiet } from './place.ts'
import { createAudience, type PlayWorld, play, printRemark } from './play.ts'

/** The faults of the demo in their order, each with an introduction. */
const scenes: { fault: FaultName; target: string; title: string; text: string }[] = [
  {
    fault: 'replication_lag',
    target: 'db-osl-1',
    title: 'A replica falls behind',
    text: 'The process of the replica is stopped (SIGSTOP), so it replicates nothing. The repair is reversible and concerns only this replica, so it runs without approval.',
  },
  {
    fault: 'host_down',
    target: 'host-osl-1',
    title: 'A host fails',
    text: 'The process of the host is killed together with its VMs. Starting the VMs elsewhere is a high-risk write, which waits for the approval of a person. The host itself stays down: its alert keeps firing, and a person has to repair the host.',
  },
]

/**
 * Causes faults in the lab and prints what Nightshift does about them. Stops without an error if
 * the signal aborts. If approvals are pending, prints the approvals instead, unless `again` is set.
 */
export async function playDemo(run: LocalRun, options: { again: boolean; signal: AbortSignal }): Promise<void> {
  const { signal } = options
  const api = createApiClient({ url: run.url, token: run.tokens.admin ?? '', run })
  if (!run.labUrl || !run.labControlToken || !run.tokens.admin) {
    printRemark('The environment names another platform or core API, so no lab runs here. The demo breaks nothing.')
    return
  }
  const pending = await listAll(api, '/api/v1/approvals?status=pending', apiApproval, 20)
  if (pending.length > 0 && !options.again) return printPending(pending, api)

  const lab = labClient(run.labUrl, run.labControlToken)
  const left = await lab.faults()
  const hit = left.flatMap(({ on, hosts }) => [on, ...hosts])
  const healed = left.length > 0 ? await lab.heal() : 0
  if (healed > 0) printRemark(`Healed ${healed} fault(s) that an earlier run left in the lab.`)
  for (const [index, scene] of scenes.entries()) {
    print(`\n${paint('bold', `Scene ${index + 1} of ${scenes.length}: ${scene.title}`)}`)
    printRemark(scene.text)
    const world: PlayWorld = { api, lab, signal, asksForMore: true }
    await untilQuiet(api, { faults: [scene.fault], target: scene.target, hit }, { signal, tell: printRemark })
    const { incident, verdict } = await play(world, scene.fault, scene.target, createAudience(api, run))
    print(`\n  ${inert(incident.id)} is ${describeEnding(incident)}.`)
    print(formatVerdict(verdict).replace(/^/gm, '  '))
    print(`  The whole story:  ${commandLine(`incidents show ${incident.id}`)}`)
    if (signal.aborted) return
  }
  await printFiringAlerts(api)
}

function printPending(pending: ApiApproval[], api: ApiClient): void {
  printRemark(
    `${pending.length} approval(s) wait for a person, so the demo breaks nothing new ("start --demo" plays the demo anyway):`,
  )
  for (const each of pending) {
    print(`\n  ${inert(each.id)}  ${inert(each.dryRun.summary)}`)
    print(`    until ${formatMoment(each.expiresAt)}; ${each.approvals} of ${each.required} approvals given`)
    print(`    ${commandLine(`approvals show ${(each satisfies Approval).id}`)}`)
  }
  print(`\n  API ${api.url}`)
}

/**
 * Prints every alert that still fires, and who handles it. Throws CommandFailed if an alert fires
 * and nobody handles its incident: the incident is closed, has no owner and is not watched.
 */
export async function printFiringAlerts(api: ApiClient): Promise<void> {
  const incidents = await listAll(api, '/api/v1/incidents?limit=100', apiIncident, 100)
  const firing = incidents.filter(({ alerts }) => alerts.firing > 0)
  if (firing.length === 0) return print(`\n  ${paint('green', 'No alert fires.')}`)
  print(`\n  ${paint('bold', 'Alerts that still fire, and who handles them')}`)
  for (const incident of firing) printRemark(describeFiring(incident))
  if (firing.some(({ category, type }) => category === 'mitigated' && type === 'host_down')) {
    printRemark(`Mark the host as repaired:  ${commandLine('lab heal')}`)
  }
  const unwatched = firing.filter((incident) => describeHolder(incident) === null)
  if (unwatched.length === 0) return
  const named = unwatched.map(({ id, type }) => `${type} of ${id}`).join(', ')
  throw new CommandFailed('unresolved', `An alert fires, and nobody has taken or watches its incident: ${named}.`)
}

function describeFiring(incident: ApiIncident): string {
  const { type, resource, id } = incident
  return `${inert(type)} on ${inert(resource?.id ?? id)} still fires: ${describeHolder(incident) ?? 'nobody has taken its incident'}.`
}

/** Returns who handles an incident whose alert fires. Null if nobody handles it. */
export function describeHolder(incident: ApiIncident): string | null {
  const { status, outcome, category, closedBy, watchUntil, cancelledUntil, owner, keptReason } = incident
  if (owner) return `${inert(owner.name)} owns the incident`
  switch (status) {
    case 'open':
      return keptReason === null
        ? 'the incident waits for its investigation'
        : `the incident waits for people (${inert(keptReason)})`
    case 'investigating':
      return 'the incident is being investigated'
    case 'awaiting_approval':
      return 'the incident awaits approval'
    case 'escalated':
      return `escalated${category ? ` (${withSpaces(category)})` : ''}`
    case 'cancelled':
      return cancelledUntil === null ? null : `a person postponed the incident until ${cancelledUntil}`
    case 'resolved':
      if (outcome === 'expected') return 'a person marked the alert as expected'
      if (closedBy === 'person') return 'a person closed the incident, and is reminded'
      return watchUntil === null ? null : `repaired, watched until it ends`
  }
}
