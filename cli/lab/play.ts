import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatSpan } from '../../domain/format.ts'
import { closedStatuses } from '../../domain/incident.ts'
import type { LabClient } from '../../lab/client.ts'
import { isAboutClusterFault, isClusterFault, listAlerted } from '../../lab/kubernetes/faults.ts'
import type { OracleVerdict, Scenario } from '../../lab/oracle.ts'
import type { Fault, FaultName } from '../../lab/state.ts'
import type { LocalRun } from '../../start/run-file.ts'
import type { ApiClient } from '../api.ts'
import { formatApproval } from '../approvals/card.ts'
import { findTemporalProgram, formatUpdateCommand } from '../approvals/decide.ts'
import { commandLine, getLogFile } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { formatLiveRow } from '../incidents/timeline.ts'
import {
  type ApiApproval,
  type ApiIncident,
  apiIncident,
  listAll,
  listEventsAfter,
  readApproval,
  readIncident,
} from '../read-api.ts'
import { followIncident } from '../stream.ts'
import { defaultTemporal, readTemporalSettings } from '../temporal.ts'
import { formatMoment, paintState } from '../ui/table.ts'
import { getTerminalWidth, inert, paint, print, wrap } from '../ui/terminal.ts'
import { faultRows } from './endings.ts'

export type PlayWorld = {
  api: ApiClient
  lab: LabClient
  signal?: AbortSignal
  /**
   * True if the scenario requests another attempt after the attempts of the day are used up.
   * Otherwise the scenario ends there.
   */
  asksForMore?: boolean
}

/** Receives the events of a run of a scenario, in this order. */
export type Audience = {
  broken(fault: Fault): void
  found(incident: ApiIncident): void
  /** Called if the run has not started after `claimPatienceMs`. */
  unclaimed(): void
  event(event: IncidentEvent, sinceIso: string): void | Promise<void>
  remark(text: string): void
}

const claimPatienceMs = 5_000

/**
 * Causes a fault, follows its incident to the end, and lets the oracle check the state. Heals
 * nothing.
 */
export async function play(
  world: PlayWorld,
  fault: FaultName,
  target: string,
  audience: Audience,
): Promise<{ incident: ApiIncident; verdict: OracleVerdict }> {
  const broken = await breakAndFind(world, fault, target, audience)
  const incident = await follow(world, broken, audience)
  return { incident, verdict: await askOracle(world, fault, target) }
}

/** The fault, its incident, and the number of the last log row before the fault. */
type BrokenFault = { fault: Fault; incidentId: string; afterSeq: number }

export async function breakAndFind(
  { api, lab, signal, asksForMore }: PlayWorld,
  name: FaultName,
  target: string,
  audience: Audience,
): Promise<BrokenFault> {
  const fault = await lab.break(name, target)
  audience.broken(fault)
  const incident = await findIncident(api, fault, { signal, tell: audience.remark })
  audience.found(incident)
  if (asksForMore && isSpent(incident, fault)) {
    audience.remark(
      'Earlier runs of this scenario used all attempts that an alert gets in a day. The scenario asks for one more, as a person can.',
    )
    await api.post(`/api/v1/incidents/${incident.id}/investigate`)
  } else if (isOnlyCounted(incident, fault)) {
    throw new CommandFailed(
      'unresolved',
      `${incident.id} about ${fault.on} was escalated after all attempts of today, so Nightshift only counts its alert. Name another target with --target, or run: nightshift incidents investigate ${incident.id}`,
    )
  }
  const earlier = (await listEventsAfter(api, incident.id)).filter(({ at }) => Date.parse(at) < Date.parse(fault.at))
  return { fault, incidentId: incident.id, afterSeq: earlier.at(-1)?.seq ?? 0 }
}

/**
 * Passes every row to the audience until the incident is over. `isOver` tells whether a closed
 * incident may open again.
 */
export async function follow(
  { api, signal }: PlayWorld,
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

/**
 * Lets the oracle check the state. If the state is not healthy, checks again after 3 s, because a
 * repaired replica may still be catching up.
 */
export async function askOracle({ lab }: PlayWorld, scenario: Scenario, target: string): Promise<OracleVerdict> {
  const verdict = await lab.oracle(scenario, target)
  if (verdict.healthy) return verdict
  await delay(3_000)
  return lab.oracle(scenario, target)
}

/**
 * Milliseconds to find the incident. A loaded machine takes minutes from fault to alert, because
 * prober and rules run at intervals.
 */
const findWithinMs = 600_000
/** Milliseconds between messages while an incident is awaited. */
const tellEveryMs = 15_000
/**
 * Milliseconds after which an incident whose alert already fired counts as the incident of the
 * fault.
 */
const newAlertTimeoutMs = 10_000

export type Waiting = {
  signal?: AbortSignal | undefined
  tell?: (text: string) => void
  withinMs?: number
  everyMs?: number
}

export const waitingTimes = ({
  signal,
  tell = () => undefined,
  withinMs = findWithinMs,
  everyMs = tellEveryMs,
}: Waiting) => ({ signal, tell, withinMs, everyMs })

const surroundings = z.looseObject({
  alerts: z.array(
    z.looseObject({ startsAt: z.string(), status: z.string(), labels: z.record(z.string(), z.string()).default({}) }),
  ),
})

/**
 * Waits for the incident that this fault's alert opened, reopened or joined. Recognizes it by the
 * type of the alert, its resource, and an alert that began after the fault. Throws CommandFailed
 * after `withinMs` without such an incident. `tell` gets messages about the wait.
 */
export async function findIncident(api: ApiClient, fault: Fault, waiting: Waiting = {}): Promise<ApiIncident> {
  const { signal, tell, withinMs, everyMs } = waitingTimes(waiting)
  const type = faultRows[fault.fault].alert
  if (type === null) throw new CommandFailed('usage', `${fault.fault} raises no alert, so there is nothing to follow.`)
  const begun = Date.now()
  const waitedFor = `an incident by an alert ${type} about ${fault.on} that began after the fault`
  for (let told = begun; ; ) {
    const about = (await listIncidentsOfType(api, type)).filter((incident) => isAbout(incident, fault))
    // Checks the oldest incident first, because if one rack opens several incidents, the later ones
    // follow the oldest.
    for (const incident of about.reverse()) {
      // Reads the incident again, because it was listed before its alert was seen, and may have
      // closed since.
      if (await hasNewAlert(api, incident, fault)) return await readIncident(api, incident.id)
    }
    const joined = Date.now() > begun + newAlertTimeoutMs ? await findFiringIncident(api, about) : null
    if (joined) return joined
    const now = Date.now()
    if (now >= begun + withinMs)
      throw new CommandFailed(
        'timeout',
        `After ${withinMs / 1000} s there is still no sign of ${waitedFor}. The lab's log (${getLogFile('lab')}) shows whether its alert was refused. "nightshift lab status" shows whether another repair removed the fault.`,
      )
    if (now >= told + everyMs) {
      tell(`Still waiting for ${waitedFor} after ${formatSpan(now - begun)}.`)
      told = now
    }
    await delay(300, undefined, { signal })
  }
}

/**
 * Finds an open incident whose alert already fires. A fault that repeats this alert opens no new
 * incident.
 */
async function findFiringIncident(api: ApiClient, about: readonly ApiIncident[]): Promise<ApiIncident | null> {
  for (const incident of about.filter(({ status }) => !closedStatuses.includes(status))) {
    if ((await listAlerts(api, incident)).some(({ status }) => status === 'firing')) return incident
  }
  return null
}

function listIncidentsOfType(api: ApiClient, type: string): Promise<ApiIncident[]> {
  return listAll(api, `/api/v1/incidents?type=${type}&limit=200`, apiIncident, 200)
}

function isAbout({ resource, title }: ApiIncident, fault: Fault): boolean {
  const { on, target, hosts } = fault
  // Compares complete names, so that node-11 does not match node-1.
  const words = title.split(/[^\w.-]+/).map((word) => word.replace(/[.-]+$/, ''))
  if (isClusterFault(fault.fault)) {
    // Uses the title: a new job or claim is not in the registry yet, so the alert is about the
    // namespace, and only the title names the job or claim.
    const isNamed = words.includes(listAlerted(fault.fault).at(-1) ?? on)
    return isNamed || (resource !== null && isAboutClusterFault(resource.id, fault.fault))
  }
  const names = [on, target, ...hosts]
  return resource ? names.includes(resource.id) : names.some((name) => words.includes(name))
}

export async function listAlerts(api: ApiClient, { id }: ApiIncident) {
  return surroundings.parse(await api.get(`/api/v1/incidents/${id}/surroundings`)).alerts
}

async function hasNewAlert(api: ApiClient, incident: ApiIncident, { at }: Fault): Promise<boolean> {
  const alerts = await listAlerts(api, incident)
  // Compares two times of the lab's clock.
  return alerts.some(({ startsAt }) => Date.parse(startsAt) >= Date.parse(at))
}

/**
 * Whether the alert came again when the incident had no attempts left for today. Then a person got
 * the incident, or the alert was only counted.
 */
const isSpent = (incident: ApiIncident, fault: Fault): boolean =>
  isOnlyCounted(incident, fault) || (incident.status === 'escalated' && incident.category === 'does_not_last')

const isOnlyCounted = ({ closedAt }: ApiIncident, { at }: Fault): boolean =>
  closedAt !== null && Date.parse(closedAt) < Date.parse(at)

/** Prints the run of a scenario to the terminal and, for an approval, the ways to decide it. */
export function createAudience(api: ApiClient, run: LocalRun): Audience {
  return {
    broken: ({ fault, on }) =>
      print(
        `\n  ${paint('bold', `Broke ${fault} on ${on}`)} in the lab.\n  Waiting for the prober of the lab to notice the fault and to post an alert.\n`,
      ),
    found: (incident) =>
      print(
        `           Incident ${inert(incident.id)}, ${paintState(incident.severity)}\n           ${inert(incident.title)}\n`,
      ),
    unclaimed: () =>
      printRemark(
        'The run has not started yet. An alert wakes the queue at once; if that signal was lost, the queue looks for incidents within 60 s.',
      ),
    remark: printRemark,
    async event(event, sinceIso) {
      const row = formatLiveRow(event, sinceIso)
      if (row) print(row)
      if (event.kind !== 'approval_requested') return
      const approval = await readApproval(api, event.metadata.approvalId)
      if (approval.status !== 'pending') return
      print(`\n${drawRule()}\n${formatApproval(approval)}\n${drawRule()}\n`)
      print(formatWaysToDecide(approval, run, await findTemporalProgram(run)))
      print(
        `\n${paint('bold', `Awaiting approval until ${formatMoment(approval.expiresAt)}.`)} Meanwhile the run holds no resource.\n`,
      )
    },
  }
}

function drawRule(): string {
  return paint('dim', '─'.repeat(Math.min(getTerminalWidth(), 80)))
}

/** Prints a remark between the rows of the log. */
export function printRemark(text: string): void {
  print(`  ${wrap(text, getTerminalWidth() - 2, '  ')}`)
}

/** Formats the four ways to decide this approval, each as a complete command or address. */
function formatWaysToDecide(approval: ApiApproval, run: LocalRun, program: string): string {
  const id = approval.id
  const token = `$(${commandLine(`approvals token ${id} approve`)} 2>/dev/null)`
  const input = `"{\\"decision\\":\\"approve\\",\\"token\\":\\"${token}\\"}"`
  const temporal = readTemporalSettings(run) ?? defaultTemporal
  return [
    paint('bold', 'Four ways to decide. The same code checks all of them:'),
    '',
    '  1. In the browser, signed in by the link above:',
    `     ${run.url}/approvals/${id}`,
    '',
    '  2. In another terminal:',
    `     ${commandLine(`approvals approve ${id}`)}`,
    `     ${commandLine(`approvals deny ${id} --reason "why not"`)}`,
    '',
    '  3. Over the API:',
    `     POST ${run.url}/api/v1/approvals/${id}/token { "decision": … }, then …/decision`,
    '',
    '  4. Through Temporal:',
    formatUpdateCommand(program, temporal, approval, input).replace(/^/gm, '     '),
  ].join('\n')
}
