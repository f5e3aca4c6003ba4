import { join, relative } from 'node:path'
import type { Command } from 'commander'
import { TemporalError } from '../clients/temporal.ts'
import { readConfig, temporalSettings } from '../config.ts'
import type { Approval } from '../domain/approval.ts'
import { withSpaces } from '../domain/format.ts'
import { labClient } from '../lab/client.ts'
import type { FaultName } from '../lab/state.ts'
import type { Running } from '../start/everything.ts'
import type { Run } from '../start/run-file.ts'
import { type SetupRow, setUpTemporal } from '../start/temporal.ts'
import {
  type ApiApproval,
  type ApiClient,
  type ApiIncident,
  apiApproval,
  apiIncident,
  CommandFailed,
  createApiClient,
  listAll,
} from './api.ts'
import { commandLine, getStateDir, rootDir } from './connection.ts'
import { describeEnding } from './incidents/follow.ts'
import { formatModelName } from './incidents/timeline.ts'
import { formatVerdict } from './lab/lab.ts'
import { createAudience, play, printRemark, type World } from './lab/play.ts'
import { formatMoment } from './ui/table.ts'
import { inert, paint, print, printJson, printNote } from './ui/terminal.ts'

/** The faults of the demo in their order, with an introduction to each. */
const scenes: { fault: FaultName; target: string; title: string; text: string }[] = [
  {
    fault: 'replication_lag',
    target: 'db-osl-1',
    title: 'A replica falls behind',
    text: 'Its process is stopped (SIGSTOP), so it replicates nothing. The repair is reversible and concerns only this replica, so it runs without approval.',
  },
  {
    fault: 'host_down',
    target: 'host-osl-1',
    title: 'A host fails',
    text: 'Its process is killed together with its VMs. Starting them elsewhere is a high-risk write, so it waits for the approval of a person. The host itself stays down: its alert keeps firing, and a person has to repair it.',
  },
]

/**
 * Breaks things in the lab and prints what Nightshift does about them. Stops quietly when the
 * signal aborts. When approvals are pending, prints those instead, unless `again` is set.
 */
export async function playDemo(run: Run, options: { again: boolean; signal: AbortSignal }): Promise<void> {
  const { signal } = options
  const api = createApiClient({ url: run.url, token: run.tokens.admin ?? '', run })
  if (!run.labUrl || !run.labControlToken || !run.tokens.admin) {
    printRemark(
      'There is no lab here, because the environment names another platform or core API: the demo breaks nothing.',
    )
    return
  }
  const pending = await listAll(api, '/api/v1/approvals?status=pending', apiApproval, 20)
  if (pending.length > 0 && !options.again) return printPending(pending, api)

  const lab = labClient(run.labUrl, run.labControlToken)
  const healed = (await lab.faults()).length > 0 ? await lab.heal() : 0
  if (healed > 0) printRemark(`Healed ${healed} fault(s) that an earlier run left in the lab.`)
  for (const [index, scene] of scenes.entries()) {
    print(`\n${paint('bold', `Scene ${index + 1} of ${scenes.length}: ${scene.title}`)}`)
    printRemark(scene.text)
    const world: World = { api, lab, signal }
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
    `${pending.length} approval(s) wait for a person, so the demo breaks nothing new ("start --demo" plays it all the same):`,
  )
  for (const each of pending) {
    print(`\n  ${inert(each.id)}  ${inert(each.dryRun.summary)}`)
    print(`    until ${formatMoment(each.expiresAt)}; ${each.approvals} of ${each.required} approvals given`)
    print(`    ${commandLine(`approvals show ${(each satisfies Approval).id}`)}`)
  }
  print(`\n  API ${api.url}`)
}

/**
 * Prints every alert that still fires, and who handles it. Throws CommandFailed when an alert fires
 * on a closed incident that no person owns and nothing watches.
 */
export async function printFiringAlerts(api: ApiClient): Promise<void> {
  const incidents = await listAll(api, '/api/v1/incidents?limit=100', apiIncident, 100)
  const firing = incidents.filter(({ alerts }) => alerts.firing > 0)
  if (firing.length === 0) return print(`\n  ${paint('green', 'No alert fires.')}`)
  print(`\n  ${paint('bold', 'What still fires, and who handles it')}`)
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
  return `${inert(type)} on ${inert(resource?.id ?? id)} still fires: ${describeHolder(incident) ?? 'no person has it'}.`
}

/** Who handles an incident whose alert fires; null for no one. */
export function describeHolder(incident: ApiIncident): string | null {
  const { status, outcome, category, closedBy, watchUntil, cancelledUntil, owner, keptReason } = incident
  if (owner) return `${inert(owner.name)} has it`
  switch (status) {
    case 'open':
      return keptReason === null ? 'it waits for its investigation' : `it is left to people (${inert(keptReason)})`
    case 'investigating':
      return 'it is being investigated'
    case 'awaiting_approval':
      return 'it awaits approval'
    case 'escalated':
      return `escalated${category ? ` (${withSpaces(category)})` : ''}`
    case 'cancelled':
      return cancelledUntil === null ? null : `a person put it off until ${cancelledUntil}`
    case 'resolved':
      if (outcome === 'expected') return 'expected, by the mark of a person'
      if (closedBy === 'person') return 'a person closed it, and is reminded'
      return watchUntil === null ? null : `repaired, watched until it ends`
  }
}

export function addStartCommand(program: Command): void {
  program
    .command('start')
    .description('start everything here, then show it at work on two real faults in the lab')
    .option('--no-demo', 'start only; break nothing')
    .option('--no-lab', 'no lab: for hosts of your own; without LLM_BASE_URL the agent is off')
    .option('--demo', 'break things even while approvals are pending')
    .addHelpText('after', '\nExample:\n  npm start\n  nightshift start --no-demo')
    .action(async (options: { demo?: boolean; lab: boolean }, self: Command) => {
      // Without --demo or --no-demo, the demo runs unless approvals are pending.
      const asked = !options.lab ? false : self.getOptionValueSource('demo') === 'cli' ? options.demo : undefined
      const env = process.env
      // Loaded here, because it is slow to load and the help does not need it.
      const [{ runInForeground }, { terminalReport }] = await Promise.all([
        import('../start/everything.ts'),
        import('../start/everything.ts'),
      ])
      process.exitCode = await runInForeground(
        { rootDir, env, stateDir: getStateDir(), lab: options.lab },
        terminalReport(process.stdout),
        async (running, signal) => {
          print(formatPlaces(running))
          if (asked !== false) await runDemo(running, env, asked === true, signal)
          if (!signal.aborted) print(`\n${paint('bold', 'Nightshift keeps running; Ctrl-C stops everything.')}`)
        },
      )
    })
}

type Line = [name: string, text: string]

const formatPage = (page: string | null): Line[] =>
  page === null ? [] : [['Page', `${page}${page.includes('#code=') ? '  (signs in once, within 10 minutes)' : ''}`]]

/** The embedded rule table solves the lab's faults only, so it is offered only with the lab. */
function formatModel({ model, labUrl }: Running['run']): Line[] {
  if (model?.isRuleTable === false) return [['Model', `${model.name} at ${model.baseUrl}`]]
  const own = `LLM_BASE_URL=http://HOST:PORT/v1 LLM_MODEL=NAME npm start${labUrl ? '' : ' -- --no-lab'}`
  if (labUrl === null) {
    return [
      ['Model', 'none: incidents open and wait for people. Connect one:'],
      ['', own],
    ]
  }
  return [
    ['Model', formatModelName('runbook-rules')],
    ['', 'It knows the faults of this lab and nothing else. Your own model:'],
    ['', own],
  ]
}

/** Plays the demo. Its failure must not stop the system. */
async function runDemo({ run }: Running, env: NodeJS.ProcessEnv, again: boolean, signal: AbortSignal): Promise<void> {
  if (env.AGENT_ENABLED && !['true', '1'].includes(env.AGENT_ENABLED)) {
    print('\n  The agent is off (AGENT_ENABLED), so the demo breaks nothing: no one would investigate it.')
    return
  }
  try {
    await playDemo(run, { again, signal })
  } catch (error) {
    if (signal.aborted) return
    printNote(`\nThe demo ended early: ${error instanceof Error ? error.message : String(error)}`)
    printNote(
      `Everything still runs. "${commandLine('doctor')}" checks what is reachable; "start --demo" plays it again.`,
    )
  }
}

function formatPlaces({ run, page }: Running): string {
  const state = relative(process.cwd(), getStateDir()) || '.'
  const lines: Line[] = [
    ...formatPage(page),
    ['API', `${run.url}/docs`],
    ['Temporal', run.temporalUiUrl ?? run.temporalAddress],
    ...formatModel(run),
    ['Tokens', join(state, 'run.json')],
    ['Logs', join(state, 'logs')],
    ['Commands', commandLine('help')],
  ]
  return [
    `\n${paint('bold', 'Nightshift is ready.')}`,
    ...lines.map(([name, text]) => `  ${paint('dim', name.padEnd(9))} ${text}`),
  ].join('\n')
}

type SetupFlags = { dryRun?: boolean; json?: boolean }

export function addSetupCommand(program: Command): void {
  program
    .command('setup')
    .description('create what Nightshift needs in Temporal: search attributes and the queue’s Schedule')
    .option('--dry-run', 'print what would be done, and change nothing')
    .option('--json', 'JSON for programs')
    .addHelpText(
      'after',
      '\nReads TEMPORAL_* and QUEUE_INTERVAL_SECONDS as the worker does: run it with the worker’s environment.\n\n' +
        'Example:\n  TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_TLS=true nightshift setup --dry-run',
    )
    .action(async ({ dryRun = false, json: isJson }: SetupFlags) => {
      const rows = await runSetup(dryRun)
      if (isJson) printJson({ dryRun, rows })
      else for (const { what, state, detail } of rows) print(`${what.padEnd(18)} ${state.padEnd(18)} ${inert(detail)}`)
      const isFailed = rows.some(({ state }) => state === 'failed')
      if (isFailed) throw new CommandFailed('error', 'Temporal is not ready for Nightshift: see above.')
      if (!isJson && rows.every(({ state }) => state === 'there')) printNote('Nothing to do.')
    })
}

async function runSetup(isDryRun: boolean): Promise<SetupRow[]> {
  const config = readConfig()
  // Created running unless the agent is off here: a worker would take a paused Schedule for one
  // that a person paused.
  const enabled = !process.env.AGENT_ENABLED || config.AGENT_ENABLED
  const schedule = { taskQueue: 'nightshift', intervalSeconds: config.QUEUE_INTERVAL_SECONDS, enabled }
  try {
    return await setUpTemporal({ settings: temporalSettings(config), schedule, isDryRun })
  } catch (error) {
    throw error instanceof TemporalError ? new CommandFailed('error', error.message) : error
  }
}
