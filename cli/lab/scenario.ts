import type { Command } from 'commander'
import { type LabClient, labClient } from '../../lab/client.ts'
import { isMetricFault } from '../../lab/metric-fault-names.ts'
import { type Scenario, scenarioName, type Verdict } from '../../lab/oracle.ts'
import type { FaultName } from '../../lab/state.ts'
import { enrolLab } from '../../start/enrol-lab.ts'
import { type ApiClient, type ApiIncident, apiIncident, createApiClient, listAll, listEventsAfter } from '../api.ts'
import { readLocalRun } from '../connection.ts'
import { type Audience, askOracle, createAudience, type World } from '../demo/play.ts'
import { CommandFailed } from '../errors.ts'
import { describeEnding } from '../incidents/card.ts'
import { parseLabName, withTimeout } from '../ui/options.ts'
import { paint, print, printJson, printNote } from '../ui/terminal.ts'
import { inert } from '../ui/text.ts'
import { alertTypes, checkEnding, faultGuide, type ScenarioName } from './endings.ts'
import { getScript, type Script, withShortTimes } from './scripts.ts'

/** A client for the lab of the start that runs here. Throws CommandFailed when there is no lab. */
export function connectLab(): LabClient {
  const run = readLocalRun()
  if (!run)
    throw new CommandFailed(
      'error',
      'Nightshift does not run here, and the lab is part of it. Start it with "npm start".',
    )
  if (!run.labUrl || !run.labControlToken) {
    throw new CommandFailed(
      'error',
      'This start has no lab, because the environment names another platform or core API.',
    )
  }
  return labClient(run.labUrl, run.labControlToken)
}

export function addOracleCommand(parent: Command): void {
  parent
    .command('oracle')
    .description('check whether the state is a good end of this scenario; exit 7 when not')
    .argument('<scenario>', scenarioName.options.join(', '), parseLabName(scenarioName.options))
    .argument('[target]', 'what was broken')
    .option('--all', 'every check, not only those that fail')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab oracle replication_lag db-osl-1 --all')
    .action(async (scenario: Scenario, target: string | undefined, options: { all?: boolean; json?: boolean }) => {
      const verdict = await connectLab().oracle(scenario, target)
      if (options.json) printJson(verdict)
      else print(formatVerdict(verdict, options))
      if (!verdict.healthy) throw new CommandFailed('unresolved', '')
    })
}

/** The verdict of the oracle: a summary, and the failed checks, or with `all` every check. */
export function formatVerdict({ healthy, checks }: Verdict, options: { all?: boolean } = {}): string {
  const wrong = checks.filter(({ ok }) => !ok)
  const sum = healthy
    ? paint('green', `✔ The oracle checked the processes themselves: all ${checks.length} checks hold.`)
    : paint('red', `✖ The oracle disagrees: ${wrong.length} of ${checks.length} checks do not hold.`)
  const shown = options.all ? checks : wrong
  return [sum, ...shown.map(({ ok, name, detail }) => `  ${ok ? '✔' : '✖'} ${inert(name)}: ${inert(detail)}`)].join(
    '\n',
  )
}

/** Scenarios that need an agent on each node. */
const deviceScenarios = new Set<ScenarioName>([
  'runaway_process',
  'bad_deploy',
  'log_orders',
  'full_log',
  'missing_package',
  'port_squatter',
  'error_rate',
  'red_herring',
  'stale_lock',
])

type ScenarioOptions = { scenario: ScenarioName; target?: string; timeout?: number; json?: boolean }

/**
 * Plays a scenario: breaks something, follows its incident to the end, asks the oracle about the
 * state and checks how the incident ended. Throws CommandFailed when either is wrong: a full disk
 * of a tenant, for example, must end with a person and not as repaired.
 */
export async function playScenario(options: ScenarioOptions): Promise<void> {
  const { scenario } = options
  const lab = connectLab()
  const run = readLocalRun()
  if (!run?.tokens.admin) throw new CommandFailed('auth', 'The run file has no admin token.')
  const api = createApiClient({ url: run.url, token: run.tokens.admin, run })
  if (deviceScenarios.has(scenario)) {
    printNote('The nodes of the lab enrol as devices of the mesh. This takes some seconds the first time.')
    const enrolled = await enrolLab(run.url, run.tokens.admin, lab)
    printNote(enrolled === 0 ? 'All were enrolled before.' : `Enrolled ${enrolled} nodes.`)
  }
  if (isMetricFault(scenario)) await watchLab(api, lab)
  const course = getScript(scenario)
  const target = await chooseTarget({ api, lab }, options, course)
  for (const fault of course.faults) {
    const healed = await lab.heal(fault, options.target)
    if (healed > 0) printNote(`Healed ${fault}, which an earlier run left.`)
  }
  const listener = options.json ? silentAudience : createAudience(api, run)
  const incident = await withInterrupt((interrupted) =>
    withTimeout(options.timeout ?? course.limitSeconds, (timeout) => {
      const signal = AbortSignal.any([interrupted, ...(timeout ? [timeout] : [])])
      return playScript({ api, lab, signal }, course, target, listener)
    }),
  )
  const verdict = await askOracle({ api, lab }, course.oracle, target)
  if (course.isHealed) {
    for (const fault of course.faults) await lab.heal(fault, target)
    listener.remark(`Healed ${target}: the fault would not end.`)
  }
  const wrongs = checkEnding(scenario, incident, await listEventsAfter(api, incident.id))
  if (options.json) printJson({ scenario, target, incident, verdict, wrongs })
  else print(formatResult(incident, verdict, wrongs))
  if (!verdict.healthy || wrongs.length > 0) throw new CommandFailed('unresolved', '')
}

/** Has Prometheus and Alertmanager watch the lab, and Nightshift read them; VictoriaLogs, where there is one, collects its logs. What they need to be there is said where it is not. */
async function watchLab(api: ApiClient, lab: LabClient): Promise<void> {
  printNote('Prometheus and Alertmanager watch the lab; the first time they take some seconds.')
  const { prometheusUrl, alertmanagerUrl, logsUrl } = await lab.monitor()
  await api.put('/api/v1/sources/lab', { kind: 'prometheus', url: prometheusUrl })
  await api.put('/api/v1/sources/lab-alerts', { kind: 'alertmanager', url: alertmanagerUrl })
  if (logsUrl) await api.put('/api/v1/sources/lab-logs', { kind: 'victorialogs', url: logsUrl })
  else
    printNote(
      'No VictoriaLogs here: logs are read on the nodes. Build it (docs/reference/lab.md) and name it by VICTORIA_LOGS, and it collects them.',
    )
}

async function playScript(world: World, course: Script, target: string, listener: Audience): Promise<ApiIncident> {
  const type = alertTypes[course.faults[0] as FaultName] ?? ''
  return await withShortTimes(world.api, type, course.times ?? {}, listener.remark, () =>
    course.play(world, target, listener),
  )
}

/** Aborts the work on Ctrl-C, so that it can restore what it changed. */
async function withInterrupt<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController()
  const interrupt = () =>
    interrupted.abort(new CommandFailed('error', 'Stopped. The faults remain; undo them with "nightshift lab heal".'))
  process.once('SIGINT', interrupt)
  try {
    return await work(interrupted.signal)
  } finally {
    process.off('SIGINT', interrupt)
  }
}

async function chooseTarget(
  { api, lab }: World,
  { scenario, target }: ScenarioOptions,
  course: Script,
): Promise<string> {
  if (target) return target
  if (!course.targets) return faultGuide[scenario as FaultName].example
  const fresh = await findFreshTarget(api, lab, alertTypes[course.faults[0] as FaultName] ?? '', course.targets)
  if (fresh === null) {
    printNote(
      'Every target of this scenario had an incident today, and an alert has three attempts a day: name one with --target.',
    )
  }
  return fresh ?? (course.targets[0] as string)
}

function formatResult(incident: ApiIncident, verdict: Verdict, wrongs: string[]): string {
  const ending =
    wrongs.length === 0
      ? paint('green', '✔ It ended as it should.')
      : [paint('red', '✖ It did not end as it should.'), ...wrongs.map((wrong) => `  ✖ ${inert(wrong)}`)].join('\n')
  const lines = [`${inert(incident.id)} is ${describeEnding(incident)}.`, ending, formatVerdict(verdict)]
  return `\n${lines.join('\n').replace(/^/gm, '  ')}`
}

const silentAudience: Audience = { broken() {}, found() {}, unclaimed() {}, event() {}, remark() {} }

const dayMs = 24 * 3_600_000

/**
 * The first target without a fault and without an incident of this type today; null when there is
 * none. An alert has three attempts a day, and two plays on one target would repair each other's
 * fault.
 */
async function findFreshTarget(
  api: ApiClient,
  lab: LabClient,
  type: string,
  targets: string[],
): Promise<string | null> {
  const [incidents, faults] = await Promise.all([
    listAll(api, `/api/v1/incidents?type=${type}&limit=200`, apiIncident, 1_000),
    lab.faults(),
  ])
  const recent = incidents.filter(({ updatedAt }) => Date.parse(updatedAt) > Date.now() - dayMs)
  const taken = new Set([...recent.map(({ resource }) => resource?.id), ...faults.map(({ on }) => on)])
  return targets.find((target) => !taken.has(target)) ?? null
}
