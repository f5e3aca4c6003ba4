import { join, relative } from 'node:path'
import { Option } from 'commander'
import type { RunningStart } from '../start/everything.ts'
import { purposeOf, runningStarts } from '../start/purpose.ts'
import { type CliCommand, commandLine, getStateDir, rootDir } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { formatModelName } from './incidents/timeline.ts'
import { playDemo } from './lab/demo.ts'
import { readEnvFile } from './setup/env-file.ts'
import { isCheckout } from './start-line.ts'
import { paint, print, printNote } from './ui/terminal.ts'

export function addStartCommand(program: CliCommand): void {
  program
    .command('start')
    .description('start Nightshift here, then show how it handles two real faults in the lab')
    .option(
      '--site',
      'start a site for your own hosts, apart from the lab; without LLM_BASE_URL nothing is investigated',
    )
    .option('--no-demo', 'start only; break nothing')
    .option('--demo', 'break parts of the lab even if approvals are pending')
    .addOption(new Option('--no-lab', 'the same as --site').hideHelp())
    .addHelpText('after', '\nExample:\n  npm start\n  nightshift start --no-demo\n  nightshift start --site')
    .action(async (options: { demo?: boolean; lab: boolean; site?: boolean }, self: CliCommand) => {
      const lab = options.lab && !options.site
      const isDemoSaid = self.getOptionValueSource('demo') === 'cli'
      if (!lab && isDemoSaid && options.demo)
        throw new CommandFailed('usage', 'A site has no lab to break: give --site or --demo.')
      // Without --demo or --no-demo, the demo runs unless approvals are pending.
      const asked = !lab ? false : isDemoSaid ? options.demo : undefined
      if (lab && !isCheckout()) throw new CommandFailed('usage', noLab)
      // Imported here, because the module is slow to load and the help does not need it.
      const { runInForeground, terminalReport } = await import('../start/everything.ts')
      const purpose = purposeOf(process.env, lab)
      const stateDir = getStateDir(purpose)
      // The settings of "nightshift setup" for this site; environment variables override them.
      const kept = purpose === 'site' ? readEnvFile(join(stateDir, 'nightshift.env')) : {}
      const env = { ...kept, ...process.env }
      process.exitCode = await runInForeground(
        { rootDir, env, stateDir, lab },
        terminalReport(process.stdout),
        async (running, signal) => {
          print(formatPlaces(running, stateDir))
          if (asked !== false) await runDemo(running, env, asked === true, signal)
          if (!signal.aborted) print(`\n${paint('bold', 'Nightshift keeps running; Ctrl-C stops everything.')}`)
        },
      )
    })
}

const noLab =
  'The package has no lab. "nightshift start --site" starts Nightshift for your own hosts. A checkout shows the demonstration.'

type Line = [name: string, text: string]

const formatPage = (page: string | null): Line[] =>
  page === null ? [] : [['Page', `${page}${page.includes('#code=') ? '  (signs in once, within 10 minutes)' : ''}`]]

/**
 * Formats the model. Offers the embedded rule table only in the lab, because it solves only the
 * faults of the lab.
 */
function formatModel({ model, labUrl }: RunningStart['run']): Line[] {
  if (model?.isRuleTable === false) return [['Model', `${model.name} at ${model.baseUrl}`]]
  if (labUrl === null) {
    return [['Model', `none, so incidents open and wait for people. Connect a model: ${commandLine('setup')}`]]
  }
  const own = `LLM_BASE_URL=http://HOST:PORT/v1 LLM_MODEL=NAME npm start`
  return [
    ['Model', formatModelName('runbook-rules')],
    ['', 'The rule table knows only the faults of this lab. To use your own model:'],
    ['', own],
  ]
}

/** Plays the demo. A failure of the demo must not stop the system. */
async function runDemo(
  { run }: RunningStart,
  env: NodeJS.ProcessEnv,
  again: boolean,
  signal: AbortSignal,
): Promise<void> {
  if (env.AGENT_ENABLED && !['true', '1'].includes(env.AGENT_ENABLED)) {
    print('\n  The agent is off (AGENT_ENABLED) and would not investigate. The demo is not played.')
    return
  }
  try {
    await playDemo(run, { again, signal })
  } catch (error) {
    if (signal.aborted) return
    printNote(`\nThe demo ended early: ${error instanceof Error ? error.message : String(error)}`)
    printNote(
      `Nightshift still runs. "${commandLine('doctor')}" checks what is reachable; "start --demo" plays it again.`,
    )
  }
}

function formatPlaces({ run, page }: RunningStart, stateDir: string): string {
  const state = relative(process.cwd(), stateDir) || '.'
  const beside = runningStarts(rootDir, undefined).find(({ url }) => url !== run.url)
  const lines: Line[] = [
    ...formatPage(page),
    ['API', `${run.url}/docs`],
    ['Temporal', run.temporalUiUrl ?? run.temporalAddress],
    ...formatModel(run),
    ['Tokens', join(state, 'run.json')],
    ['Logs', join(state, 'logs')],
    ['Commands', commandLine(beside ? `help  (each with --url ${run.url})` : 'help')],
  ]
  const other = run.labUrl ? 'Your site also runs' : 'The lab also runs'
  return [
    `\n${paint('bold', 'Nightshift is ready.')} ${whatRuns(run, state)}`,
    ...(beside ? [`${other}, at ${beside.url}.`] : []),
    ...lines.map(([name, text]) => `  ${paint('dim', name.padEnd(9))} ${text}`),
  ].join('\n')
}

function whatRuns({ labUrl }: RunningStart['run'], state: string): string {
  return labUrl
    ? `This is the lab with its demonstration, with its data in ${state}; hosts of your own: npm start -- --site`
    : `This is your site, kept in ${state}; the lab is kept elsewhere.`
}
