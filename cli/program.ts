import { type Command, CommanderError } from 'commander'
import { ZodError } from 'zod'
import { commandPrefix, spellCommands } from '../domain/own-command.ts'
import { nameFaults } from '../domain/schema-faults.ts'
import { version } from '../domain/version.ts'
import { ApiProblem } from './api.ts'
import { addCommands } from './commands.ts'
import { CliCommand } from './connection.ts'
import { CommandFailed, type ExitOutcome, exitCodes } from './exit-codes.ts'
import { beQuiet, inert, inertJsonText, paint, printError } from './ui/terminal.ts'
import { inert, inertJsonText, paint, parseOneOf, print, printNote, wrap } from './ui/terminal.ts'

export function addHelpCommand(program: Command): void {
  const help = program
    .command('help')
    .description('this help, that of a command, or "help exit-codes"')
    .argument('[words...]', 'a command, or exit-codes')
    .addHelpText('after', '\nExample:\n  nightshift help approvals approve\n  nightshift help exit-codes')
    .action((words: string[]) => {
      if (words[0] === 'exit-codes') return print(formatExitCodes())
      let command: Command | undefined = program
      for (const each of words) command = command?.commands.find((candidate) => candidate.name() === each)
      if (!command) return help.error(`error: there is no command "${words.join(' ')}"`)
      command.outputHelp()
    })
}

function formatExitCodes(): string {
  const rows = Object.values(exitCodes).map(
    ({ code, meaning }) => `  ${String(code).padStart(3)}  ${wrap(meaning, 72, '       ')}`,
  )
  return ['Exit codes:', ...rows].join('\n')
}

/**
 * Adds `completion`. The words are read from the commands themselves, so the script is complete.
 */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('a script that completes commands and options in your shell')
    .argument('<shell>', 'bash, zsh or fish', parseOneOf(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      '\nExample:\n  source <(nightshift completion bash)\n  nightshift completion fish > ~/.config/fish/completions/nightshift.fish',
    )
    .action(async (shell: string) => {
      // Loads all commands: `nightshift completion` alone loads only itself.
      const { buildProgram } = await import('./program.ts')
      const words = collectWords(await buildProgram())
      if (shell === 'fish') return print(buildFishScript(words))
      print(
        shell === 'bash'
          ? buildBashScript(words)
          : `autoload -U +X bashcompinit && bashcompinit\n${buildBashScript(words)}`,
      )
    })
}

type Words = Map<string, string[]>

function collectWords(command: Command, path: string[] = [], words: Words = new Map()): Words {
  const visible = command.commands.filter((each) => each.name() !== 'help' || path.length === 0)
  const options = command.options.map((option) => option.long ?? option.short ?? '').filter(Boolean)
  words.set(path.join(' '), [...visible.map((each) => each.name()), ...options, '--help'])
  for (const each of visible) collectWords(each, [...path, each.name()], words)
  return words
}

function buildBashScript(words: Words): string {
  const cases = [...words].map(([path, offered]) => `    '${path}') words='${offered.join(' ')}' ;;`).join('\n')
  return `_nightshift() {
  local path='' word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  while :; do
    case "$path" in
${cases}
    esac
    [ -n "$words" ] && break
    [ -z "$path" ] && break
    case "$path" in *' '*) path="\${path% *}" ;; *) path='' ;; esac
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _nightshift nightshift`
}

/** Offers the words of the longest command on the line, as in bash. Ignores values of options. */
function buildFishScript(words: Words): string {
  const cases = [...words].map(
    ([path, offered]) => `            case '${path}'\n                set words ${offered.join(' ')}`,
  )
  return `function __nightshift_words
    set -l path
    for word in (commandline --tokenize --cut-at-cursor --current-process)[2..]
        string match --quiet -- '-*' $word; or set --append path $word
    end
    while true
        set -l words
        switch "$path"
${cases.join('\n')}
        end
        if set --query words[1]; or not set --query path[1]
            string join \\n -- $words
            return
        end
        set --erase path[-1]
    end
end
complete --command nightshift --no-files --arguments '(__nightshift_words)'`
}

/** Each command by its first word, in the order of the help, with the file that defines it. */
const commands: Record<string, () => Promise<(root: CliCommand) => void>> = {
  start: async () => (await import('./start.ts')).addStartCommand,
  status: async () => (await import('./status.ts')).addStatusCommand,
  usage: async () => (await import('./usage.ts')).addUsageCommand,
  reports: async () => (await import('./reports.ts')).addReportsCommand,
  login: async () => (await import('./login.ts')).addLoginCommand,
  logout: async () => (await import('./login.ts')).addLogoutCommand,
  doctor: async () => (await import('./doctor.ts')).addDoctorCommand,
  migrate: async () => (await import('./migrate.ts')).addMigrateCommand,
  setup: async () => (await import('./setup/setup.ts')).addSetupCommand,
  incidents: async () => (await import('./incidents/incidents.ts')).addIncidentsCommand,
  expectations: async () => (await import('./incidents/close.ts')).addExpectationsCommand,
  home: async () => (await import('./home.ts')).addHomeCommand,
  search: async () => (await import('./search.ts')).addSearchCommand,
  alerts: async () => (await import('./alerts.ts')).addAlertsCommand,
  approvals: async () => (await import('./approvals/approvals.ts')).addApprovalsCommand,
  act: async () => (await import('./act.ts')).addActCommand,
  ask: async () => (await import('./incidents/follow.ts')).addAskCommand,
  config: async () => (await import('./config/config.ts')).addConfigCommand,
  destinations: async () => (await import('./destinations.ts')).addDestinationsCommand,
  inventory: async () => (await import('./inventory.ts')).addInventoryCommand,
  resources: async () => (await import('./resources.ts')).addResourcesCommand,
  changes: async () => (await import('./changes.ts')).addChangesCommand,
  model: async () => (await import('./model/model.ts')).addModelCommand,
  sources: async () => (await import('./sources.ts')).addSourcesCommand,
  knowledge: async () => (await import('./knowledge.ts')).addKnowledgeCommand,
  prompt: async () => (await import('./prompt.ts')).addPromptCommand,
  jobs: async () => (await import('./jobs.ts')).addJobsCommand,
  operators: async () => (await import('./operators.ts')).addOperatorsCommand,
  undo: async () => (await import('./undo.ts')).addUndoCommand,
  'who-may': async () => (await import('./who-may.ts')).addWhoMayCommand,
  audit: async () => (await import('./audit.ts')).addAuditCommand,
  backup: async () => (await import('./backup.ts')).addBackupCommand,
  restore: async () => (await import('./backup.ts')).addRestoreCommand,
  trust: async () => (await import('./trust.ts')).addTrustCommand,
  retention: async () => (await import('./retention.ts')).addRetentionCommand,
  verify: async () => (await import('./verify.ts')).addVerifyCommand,
  tokens: async () => (await import('./tokens.ts')).addTokensCommand,
  ingest: async () => (await import('./ingest.ts')).addIngestCommand,
  judge: async () => (await import('./judge.ts')).addJudgeCommand,
  policy: async () => (await import('./policy.ts')).addPolicyCommand,
  placement: async () => (await import('./placement/placement.ts')).addPlacementCommand,
  mesh: async () => (await import('./mesh/mesh.ts')).addMeshCommand,
  agent: async () => (await import('./mesh/agent-out.ts')).addAgentOutCommand,
  lab: async () => (await import('./lab/lab.ts')).addLabCommand,
  completion: async () => (await import('./program.ts')).addCompletionCommand,
  help: async () => (await import('./program.ts')).addHelpCommand,
}

/** Help names commands as they are typed here. */
const spell = (text: string): string => spellCommands(text, commandPrefix(process.env))

/**
 * Builds the program. Without a word all commands are loaded, else the one that starts with it: the others are there by name alone, so
 * that a short command stays short. Runs nothing.
 */
export async function buildProgram(firstWord?: string): Promise<CliCommand> {
  const root = new CliCommand('nightshift')
    .usage('<command> [words] [options]')
    .description('Investigates infrastructure incidents while people sleep.')
    .version(version, '--version', 'which version this is')
    .exitOverride()
    // A flag belongs to the command that it follows: "lab faults --json" is of "faults".
    .enablePositionalOptions()
    // A command of the list by its name and its words: that it has options goes without saying.
    .configureHelp({ subcommandTerm: (each) => [each.name(), ...wordsOf(each)].join(' ') })
    .configureOutput({
      writeOut: (text) => void process.stdout.write(spell(text)),
      writeErr: (text) => void process.stderr.write(spell(text)),
    })
    .hook('preAction', async (_, action) => {
      if (action.opts().quiet) beQuiet()
      if (action.opts().color === false) process.env.NO_COLOR = '1'
      await (await import('./complete-ids.ts')).completeIds(action)
    })
    .addHelpText(
      'after',
      `
Of every command: -h, --help; -q, --quiet; --no-color. Most know --json.
Topics: nightshift help exit-codes, environment, ids, output

Example:
  nightshift start
  nightshift incidents list --status escalated`,
    )
  await addCommands(root, firstWord ?? 'all')
  return root
}

const wordsOf = ({ registeredArguments }: Command): string[] =>
  registeredArguments.map((each) => {
    const name = `${each.name()}${each.variadic ? '...' : ''}`
    return each.required ? `<${name}>` : `[${name}]`
  })

/** Runs the command of the arguments and sets the exit code. Prints every error once, on stderr. */
export async function runCommand(program: Command, argv: string[]): Promise<void> {
  // The reader of our output may stop early, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
  try {
    await program.parseAsync(argv)
  } catch (error) {
    const outcome = toOutcome(error)
    process.exitCode = exitCodes[outcome].code
    if (argv.includes('--json')) printForProgram(error, outcome)
    else printForPerson(error)
  }
}

function toOutcome(error: unknown): ExitOutcome {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 'ok' : 'usage'
  if (error instanceof CommandFailed || error instanceof ApiProblem) return error.outcome
  return 'error'
}

function printForPerson(error: unknown): void {
  // Commander has already printed what is wrong with the command line.
  if (error instanceof CommanderError) return
  const message = toMessage(error)
  if (message !== '') printError(`${paint('red', '✖')} ${inert(message, { lines: true })}`)
  if (error instanceof ApiProblem && error.remedy) printError(`  ${error.remedy}`)
}

function printForProgram(error: unknown, outcome: ExitOutcome): void {
  if (error instanceof CommanderError) return
  const problem =
    error instanceof ApiProblem
      ? { ...error.problem, ...(error.remedy && { remedy: error.remedy }) }
      : { title: toMessage(error), status: 0, detail: '', code: outcome }
  if (problem.title !== '') printError(inertJsonText(problem))
}

function toMessage(error: unknown): string {
  if (error instanceof ZodError) {
    return `This version does not understand an answer of the API: ${nameFaults(error, { max: 1 })}`
  }
  return error instanceof Error ? error.message : String(error)
}
