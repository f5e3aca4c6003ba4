import { formatSpan } from '../../domain/format.ts'
import { type LabClient, labClient } from '../../lab/client.ts'
import { isDatabaseFault } from '../../lab/databases/faults.ts'
import { isClusterFault } from '../../lab/kubernetes/faults.ts'
import { isMetricFault } from '../../lab/monitoring-rules.ts'
import { type OracleVerdict, type Scenario, scenarioName } from '../../lab/oracle.ts'
import { type FaultName, faultName } from '../../lab/state.ts'
import { enrolLab } from '../../start/lab-devices.ts'
import type { LocalRun } from '../../start/run-file.ts'
import { type ApiClient, createApiClient } from '../api.ts'
import { type CliCommand, readLabRun } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { describeEnding } from '../incidents/follow.ts'
import { type ApiIncident, listEventsAfter } from '../read-api.ts'
import { formatTable } from '../ui/table.ts'
import { inert, paint, parseLabName, parseSeconds, print, printJson, printNote, withTimeout } from '../ui/terminal.ts'
import { connectDatabases, showDatabases } from './databases.ts'
import { checkEnding, faultRows, type ScenarioName, scenarioNames } from './endings.ts'
import { connectKubernetes, showKubernetes } from './kubernetes.ts'
import { clearStage, findFreshTarget, untilQuiet } from './place.ts'
import { type Audience, askOracle, createAudience, type PlayWorld } from './play.ts'
import { getScript, type ScenarioScript, withShortTimes } from './scripts.ts'

/**
 * Returns a client for the lab that `start` runs from this checkout. Throws CommandFailed if there
 * is no lab.
 */
function connectLab(): LabClient {
  const run = readLabRun()
  if (!run)
    throw new CommandFailed(
      'error',
      'Nightshift does not run here, so no lab runs either. Start both with "npm start".',
    )
  if (!run.labUrl || !run.labControlToken) {
    throw new CommandFailed('error', 'A site without a lab runs here. Start the lab too with "npm start".')
  }
  return labClient(run.labUrl, run.labControlToken)
}

/** Returns what `start` runs here, and its API with the admin token. */
function connectAdmin(): { api: ApiClient; run: LocalRun; token: string } {
  const run = readLabRun()
  const token = run?.tokens.admin
  if (!run || !token) throw new CommandFailed('auth', 'The run file has no admin token.')
  return { api: createApiClient({ url: run.url, token, run }), run, token }
}

function addOracleCommand(parent: CliCommand): void {
  parent
    .command('oracle')
    .description('check whether the lab is in the state that this scenario must end in; exit 7 when not')
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

/**
 * Formats the verdict of the oracle: a summary, and the checks that failed, or all checks with
 * `all`.
 */
export function formatVerdict({ healthy, checks }: OracleVerdict, options: { all?: boolean } = {}): string {
  const wrong = checks.filter(({ ok }) => !ok)
  const sum = healthy
    ? paint('green', `✔ The oracle checked the processes themselves: all ${checks.length} checks hold.`)
    : paint('red', `✖ The oracle found a wrong state: ${wrong.length} of ${checks.length} checks do not hold.`)
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
 * Runs a scenario: causes a fault, follows its incident to the end, lets the oracle check the
 * state, and checks the ending. Throws CommandFailed if the state of the lab or the ending of the
 * incident is wrong. For example, a full disk of a tenant must be handed to a person, and must not
 * end as repaired.
 */
async function playScenario(options: ScenarioOptions): Promise<void> {
  const { scenario } = options
  const lab = connectLab()
  const { api, run, token } = connectAdmin()
  if (deviceScenarios.has(scenario)) {
    printNote('The nodes of the lab enrol as devices of the mesh. The first enrolment takes some seconds.')
    const enrolled = await enrolLab(run.url, token, lab)
    printNote(enrolled === 0 ? 'All nodes are enrolled already.' : `Enrolled ${enrolled} nodes.`)
  }
  if (isMetricFault(scenario)) await watchLab(api, lab)
  if (isClusterFault(scenario)) await connectKubernetes(api, lab, { isQuiet: options.json === true })
  if (isDatabaseFault(scenario)) await connectDatabases(api, lab, { isQuiet: options.json === true })
  const course = getScript(scenario)
  const target = await chooseTarget({ api, lab }, options, course)
  const { faults } = course
  const hit = await clearStage(lab, { faults, target, hit: [] }, { isNamed: Boolean(options.target), tell: printNote })
  const shown = options.json ? silentAudience : createAudience(api, run)
  let begun: string | null = null
  const listener: Audience = {
    ...shown,
    broken(fault) {
      begun ??= fault.at
      shown.broken(fault)
    },
  }
  const incident = await withInterrupt((interrupted) =>
    withTimeout(options.timeout ?? course.limitSeconds, async (timeout) => {
      const signal = AbortSignal.any([interrupted, ...(timeout ? [timeout] : [])])
      await untilQuiet(api, { faults, target, hit }, { signal, tell: listener.remark })
      return await playScript({ api, lab, signal, asksForMore: !course.countsAttempts }, course, target, listener)
    }),
  )
  const verdict = await askOracle({ api, lab }, course.oracle, target)
  if (course.isHealed) {
    for (const fault of course.faults) await lab.heal(fault, target)
    listener.remark(`Healed ${target}, because the fault would not end by itself.`)
  }
  const wrongs = checkEnding(scenario, incident, await listEventsAfter(api, incident.id), begun)
  if (options.json) printJson({ scenario, target, incident, verdict, wrongs })
  else print(formatResult(incident, verdict, wrongs))
  if (!verdict.healthy || wrongs.length > 0) throw new CommandFailed('unresolved', '')
}

/**
 * Starts Prometheus and Alertmanager to watch the lab, and adds them as sources. If VictoriaLogs is
 * installed, it collects the lab's logs. Otherwise prints how to install it.
 */
async function watchLab(api: ApiClient, lab: LabClient): Promise<void> {
  printNote('Prometheus and Alertmanager start to watch the lab. The first start takes some seconds.')
  const { prometheusUrl, alertmanagerUrl, logsUrl } = await lab.monitor()
  await api.put('/api/v1/sources/lab', { kind: 'prometheus', url: prometheusUrl })
  await api.put('/api/v1/sources/lab-alerts', { kind: 'alertmanager', url: alertmanagerUrl })
  if (logsUrl) await api.put('/api/v1/sources/lab-logs', { kind: 'victorialogs', url: logsUrl })
  else
    printNote(
      'No VictoriaLogs runs here, so logs are read on the nodes. To collect them, build VictoriaLogs (docs/reference/lab.md) and set VICTORIA_LOGS to its path.',
    )
}

async function playScript(
  world: PlayWorld,
  course: ScenarioScript,
  target: string,
  listener: Audience,
): Promise<ApiIncident> {
  const type = faultRows[course.faults[0] as FaultName]?.alert ?? ''
  return await withShortTimes(world.api, type, course.times ?? {}, listener.remark, () =>
    course.play(world, target, listener),
  )
}

/** Aborts `work` on Ctrl-C, so that it can restore what it changed. */
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
  { api, lab }: PlayWorld,
  { scenario, target }: ScenarioOptions,
  course: ScenarioScript,
): Promise<string> {
  if (target) return target
  if (!course.targets) return faultRows[scenario as FaultName].example
  const fresh = await findFreshTarget(api, lab, course.faults[0] as FaultName, course.targets)
  if (fresh === null && course.countsAttempts) {
    printNote(
      'Every target of this scenario had an incident today, and an alert gets three attempts a day. Name a target with --target.',
    )
  }
  return fresh ?? (course.targets[0] as string)
}

function formatResult(incident: ApiIncident, verdict: OracleVerdict, wrongs: string[]): string {
  const ending =
    wrongs.length === 0
      ? paint('green', '✔ The incident ended as it should.')
      : [
          paint('red', '✖ The incident did not end as it should.'),
          ...wrongs.map((wrong) => `  ✖ ${inert(wrong)}`),
        ].join('\n')
  const lines = [`${inert(incident.id)} is ${describeEnding(incident)}.`, ending, formatVerdict(verdict)]
  return `\n${lines.join('\n').replace(/^/gm, '  ')}`
}

const silentAudience: Audience = { broken() {}, found() {}, unclaimed() {}, event() {}, remark() {} }

type Options = {
  databases?: boolean
  kubernetes?: boolean
  practice?: boolean
  scenario?: ScenarioName
  target?: string
  timeout?: number
  json?: boolean
}

export function addLabCommand(program: CliCommand): void {
  const parent = program
    .command('lab')
    .description('a platform of real processes to break things in')
    .enablePositionalOptions()
    .option(
      '--scenario <name>',
      'cause the fault of this scenario, follow the incident to its end, check the result',
      parseLabName(scenarioNames),
    )
    .option('--databases', 'start PostgreSQL and MariaDB with their replicas, and show their addresses')
    .option('--kubernetes', 'start a Kubernetes of two nodes, and show its address (needs root)')
    .option('--practice', 'practise approvals: ten questions, three of them traps; nothing runs')
    .option('--target <target>', 'with --scenario: the node, shard, host or other target to break')
    .option('--timeout <seconds>', 'with --scenario: give up after this long', parseSeconds)
    .option('--json', 'with --scenario: one JSON document at the end')
    .addHelpText(
      'after',
      '\nExample:\n  npm run lab -- --scenario service_down\n  nightshift lab break host_down host-osl-1',
    )
    .action(async ({ scenario, databases, kubernetes, practice, ...options }: Options, self: CliCommand) => {
      if (practice) return await (await import('./practice.ts')).practise(options)
      if (kubernetes) await showKubernetes(connectLab(), options)
      if (databases) await showDatabases(connectAdmin().api, connectLab(), options)
      if ((databases || kubernetes) && !scenario) return
      if (!scenario) return self.help({ error: true })
      await playScenario({ scenario, ...options })
    })
  addFaultsCommand(parent)
  addBreakCommand(parent)
  addHealCommand(parent)
  addOracleCommand(parent)
  addStatusCommand(parent)
}

function addFaultsCommand(parent: CliCommand): void {
  parent
    .command('faults')
    .description('what can be broken, and where')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab faults')
    .action((options: { json?: boolean }) => {
      const all = Object.entries(faultRows).map(([fault, { target, example, does }]) => ({
        fault,
        target,
        example,
        does,
      }))
      if (options.json) return printJson(all)
      const rows = all.map(({ fault, does, example }) => [fault, example, does])
      print(formatTable(['FAULT', 'TARGET, AS', 'DOES'], rows, 2))
    })
}

function addBreakCommand(parent: CliCommand): void {
  parent
    .command('break')
    .description('break something for real')
    .argument('<fault>', 'see "lab faults"', parseLabName(faultName.options))
    .argument('<target>', 'a node, shard, host, rack, link or database')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab break replication_lag db-osl-1')
    .action(async (fault: FaultName, target: string, options: { json?: boolean }) => {
      const broken = await connectLab().break(fault, target)
      if (options.json) return printJson(broken)
      printNote(`Broke ${broken.fault} on ${inert(broken.on)}.`)
    })
}

function addHealCommand(parent: CliCommand): void {
  parent
    .command('heal')
    .description('undo one fault, or all faults; then start everything that is down')
    .argument('[fault]', 'only this fault: see "lab faults"', parseLabName(faultName.options))
    .argument('[target]', 'only there')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab heal\n  nightshift lab heal disk_pressure_tenant web-osl-1')
    .action(async (fault: FaultName | undefined, target: string | undefined, options: { json?: boolean }) => {
      const healed = await connectLab().heal(fault, target)
      if (options.json) return printJson({ healed })
      printNote(healed === 0 ? 'Nothing was broken.' : `Healed ${healed} ${healed === 1 ? 'fault' : 'faults'}.`)
    })
}

function addStatusCommand(parent: CliCommand): void {
  parent
    .command('status')
    .description('what is broken now, and which writes ran')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab status --json')
    .action(async (options: { json?: boolean }) => {
      const lab = connectLab()
      const [broken, effects] = await Promise.all([lab.faults(), lab.effects()])
      if (options.json) return printJson({ faults: broken, effects })
      if (broken.length === 0) print('Nothing was broken since the last heal.')
      else {
        const rows = broken.map((each) => [each.fault, inert(each.on), formatSpan(Date.now() - Date.parse(each.at))])
        print(formatTable(['FAULT', 'ON', 'AGO'], rows, 1))
      }
      if (effects.length === 0) return
      const rows = effects.map((each) => [String(each.runs), each.status, inert(`${each.request}: ${each.detail}`)])
      print(`\n${formatTable(['RUNS', 'STATUS', 'WRITE'], rows, 2)}`)
    })
}
