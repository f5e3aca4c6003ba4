import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import type { TemporalSettings } from '../../clients/temporal.ts'
import { type Decision, decisionToken, denialCategory, type TokenPurpose } from '../../domain/approval.ts'
import { nextTimeOfDay, parseTime } from '../../domain/format.ts'
import { investigationId } from '../../domain/step-key.ts'
import type { LocalRun } from '../../start/run-file.ts'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { type ApiClient, ApiProblem } from '../api.ts'
import { type CliCommand, type ConnectionOptions, commandLine, connect, rootDir } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { type ApiApproval, readApproval } from '../read-api.ts'
import { defaultTemporal, readTemporalSettings } from '../temporal.ts'
import { formatMoment } from '../ui/table.ts'
import {
  confirm,
  editText,
  inert,
  inertJsonText,
  isAskable,
  paint,
  parseOneOf,
  print,
  printJson,
  printNote,
} from '../ui/terminal.ts'
import { formatApproval } from './card.ts'

type DecideOptions = ConnectionOptions & {
  reason?: string
  category?: string
  args?: string
  edit?: boolean
  uses?: number
  hours?: number
  hostIsOff?: string[]
  askAgainAt?: string
  yes?: boolean
}

export function addApproveCommand(parent: CliCommand): void {
  parent
    .command('approve')
    .description('let the action run once, exactly as shown; a terminal shows it and asks')
    .argument('<ids...>', 'such as apr_…; several ids if they are on one card')
    .option('--reason <text>', 'reason, recorded in the timeline')
    .option(
      '--edit',
      'change the arguments in $EDITOR first: the changed call is checked and requested again, with your vote',
    )
    .option('--args <json>', 'like --edit, but with these arguments instead of an editor')
    .option(
      '--uses <n>',
      'let the same action run this many more times without asking; low and medium risk only',
      parseNumber,
    )
    .option(
      '--host-is-off <host>',
      'you checked yourself that this dead host is off; needed if no source confirms that it is off; repeatable',
      (host: string, before: string[] = []) => [...before, host],
    )
    .option('--hours <n>', 'for how many hours, at most 8', parseNumber, 8)
    .option('--yes', 'skip the confirmation; without a terminal the command asks for none')
    .connected('\nExample:\n  nightshift approvals approve apr_01k…\n  nightshift approvals approve apr_01k… apr_01m…')
    .action((ids: string[], options: DecideOptions) => decideEach(ids, 'approve', options))
}

export function addDenyCommand(parent: CliCommand): void {
  parent
    .command('deny')
    .description('deny the action; the agent reads why and continues')
    .argument('<ids...>', 'such as apr_…; several ids if they are on one card')
    .requiredOption('--reason <text>', 'reason; the agent reads it')
    .option(
      '--category <word>',
      `kind of denial: ${denialCategory.options.join(', ')}`,
      parseOneOf(denialCategory.options),
      'other',
    )
    .option(
      '--ask-again-at <time>',
      'deny for now: the agent investigates the incident again at the given time, at most a day from now, such as 06:00 (local time) or 2026-11-30T05:00:00Z',
      parseMomentToCome,
    )
    .connected(
      '\nExample:\n  nightshift approvals deny apr_01k… --reason "host-osl-2 is being replaced"\n  nightshift approvals deny apr_01k… --reason "not at night" --ask-again-at 06:00',
    )
    .action((ids: string[], options: DecideOptions, self: CliCommand) => {
      if (options.reason?.trim() === '') self.error('error: a denial needs a reason, which the agent reads')
      return decideEach(ids, 'deny', options)
    })
}

/** Parses `06:00`, the next 06:00 by this machine's clock, or a time with its date. */
function parseMomentToCome(text: string): string {
  const [, hours, minutes] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  if (hours !== undefined) return nextTimeOfDay(Number(hours), Number(minutes), new Date()).toISOString()
  const at = parseTime(text)
  if (Number.isNaN(at)) throw new InvalidArgumentError('Write a time, such as 06:00 or 2026-11-30T05:00:00Z.')
  return new Date(at).toISOString()
}

function parseNumber(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value)) throw new InvalidArgumentError('Give a number.')
  return value
}

/**
 * Decides the last approval first. A run continues as soon as its first call is decided, and then
 * finds the other calls already decided.
 */
async function decideEach(ids: string[], decision: Decision, options: DecideOptions): Promise<void> {
  const distinct = [...new Set(ids)]
  if (distinct.length > 1 && (options.args || options.edit || options.uses !== undefined || options.hostIsOff))
    throw new CommandFailed(
      'usage',
      '--edit, --args, --uses and --host-is-off work for one approval only. Nothing was decided.',
    )
  const answers: unknown[] = []
  for (const [done, id] of distinct.reverse().entries()) {
    try {
      answers.push(await decide(id, decision, options))
    } catch (error) {
      if (done > 0)
        printNote(`${done} of ${distinct.length} decisions are recorded. The other decisions were not sent.`)
      throw error
    }
  }
  if (options.json) printJson(distinct.length === 1 ? answers[0] : answers)
}

async function decide(id: string, decision: Decision, options: DecideOptions): Promise<unknown> {
  const { api } = connect(options)
  const args = await readEditedArguments(api, id, options)
  if (decision === 'approve') await confirmApproval(api, id, args, options)
  const said = {
    decision,
    reason: options.reason ?? null,
    ...(decision === 'deny' && { category: options.category }),
    ...(options.askAgainAt && { askAgainAt: options.askAgainAt }),
    ...(args && { args }),
    ...(options.hostIsOff && { hostIsOff: options.hostIsOff }),
    ...(options.uses !== undefined && { grant: { uses: options.uses, hours: options.hours ?? 8 } }),
  }
  const { token } = await mintToken(api, id, said)
  const answer = await runDecisionStep(api, id, () =>
    api.post(`/api/v1/approvals/${encodeURIComponent(id)}/decision`, { ...said, token }),
  )
  const { status } = z.looseObject({ status: z.string() }).parse(answer)
  if (!options.json) await printDecision(api, id, decision, status)
  return answer
}

/**
 * Shows the approval at a terminal and asks for confirmation. Throws CommandFailed if the person
 * refuses.
 */
async function confirmApproval(
  api: ApiClient,
  id: string,
  args: Record<string, unknown> | null,
  options: DecideOptions,
): Promise<void> {
  if (options.yes || options.json || !isAskable()) return
  const approval = await readApproval(api, id)
  // Leaves it to the API to report that an approval is already decided.
  if (approval.status !== 'pending') return
  printNote(formatApproval(approval))
  if (args) printNote(`\n  with your arguments instead: ${inertJsonText(args)}`)
  if (!(await confirm(`\nApprove ${approval.id}?`))) throw new CommandFailed('error', 'Nothing was decided.')
}

/**
 * Reads changed arguments from --args, or from an editor that shows the current ones. Null if
 * neither is given.
 */
async function readEditedArguments(
  api: ApiClient,
  id: string,
  { args, edit }: DecideOptions,
): Promise<Record<string, unknown> | null> {
  if (!args && !edit) return null
  const text = args ?? editText(JSON.stringify((await readApproval(api, id)).arguments, null, 2))
  const parsed = z.record(z.string(), z.unknown()).safeParse(parseJson(text))
  if (!parsed.success) throw new CommandFailed('usage', 'The arguments are not a JSON object. Nothing was decided.')
  return parsed.data
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function printDecision(api: ApiClient, id: string, decision: Decision, status: string): Promise<void> {
  const { required, approvals, incidentId } = await readApproval(api, id)
  if (decision === 'approve' && status === 'pending') {
    return printNote(
      `${paint('yellow', '…')} Your approval of ${id} counts: ${approvals} of ${required}. Another person must approve too.`,
    )
  }
  if (decision === 'approve' && status === 'withdrawn') {
    return printNote(
      `${paint('green', '✔')} ${id} is withdrawn: the call with your arguments is checked and requested again, with your vote. Follow it with "${commandLine(`incidents watch ${incidentId}`)}".`,
    )
  }
  printNote(
    `${paint('green', '✔')} ${id} is ${status}. Follow it with "${commandLine(`incidents watch ${incidentId}`)}".`,
  )
}

// Leaves out the decision, which the command has requested and therefore knows.
const mintedToken = decisionToken.omit({ decision: true }).loose()
type MintedToken = z.infer<typeof mintedToken>
type SaidDecision = { decision: Decision; purpose?: TokenPurpose; reason?: string | null }

/** Creates a token that gives this decision on this approval, once. */
async function mintToken(api: ApiClient, id: string, said: SaidDecision): Promise<MintedToken> {
  return runDecisionStep(api, id, async () =>
    mintedToken.parse(await api.post(`/api/v1/approvals/${encodeURIComponent(id)}/token`, said)),
  )
}

/**
 * Runs one step of a decision. If the step comes too late, throws CommandFailed with the state of
 * the approval: already decided (exit code 5) or ended (exit code 6).
 */
export async function runDecisionStep<T>(api: ApiClient, id: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (!(error instanceof ApiProblem) || ![409, 410].includes(error.problem.status)) throw error
    const { status, decisions } = await readApproval(api, id)
    const last = decisions.at(-1)
    const by = last ? ` (${last.decision} by ${last.operator})` : ''
    if (status === 'approved' || status === 'consumed' || status === 'denied') {
      throw new CommandFailed('conflict', inert(`${id} is already ${status}${by}.`))
    }
    if (status === 'expired' || status === 'withdrawn') {
      throw new CommandFailed('denied', `${id} is ${status} and can no longer be decided.`)
    }
    throw error
  }
}

const verdicts = ['approve', 'deny'] as const

export function addTokenCommand(parent: CliCommand): void {
  parent
    .command('token')
    .description('create a token to decide through Temporal; prints the token, and on stderr how to use it')
    .argument('<id>', 'the approval, such as apr_…')
    .argument('<verdict>', 'approve or deny: the token is valid for this verdict only', parseOneOf(verdicts))
    .connected('\nExample:\n  nightshift approvals token apr_01k… approve')
    .action(async (id: string, verdict: Decision, options: ConnectionOptions) => {
      const { api, target } = connect(options)
      const approval = await readApproval(api, id)
      const minted = await mintToken(api, id, { decision: verdict, purpose: 'temporal' })
      if (options.json) return printJson(minted)
      print(minted.token)
      const temporal = readTemporalSettings(target.run) ?? defaultTemporal
      const program = await findTemporalProgram(target.run)
      const input = {
        decision: verdict,
        token: minted.token,
        ...(verdict === 'deny' && { reason: 'reason for the denial; the agent reads it' }),
      }
      printNote(`Valid once, until ${formatMoment(minted.expiresAt)}. To ${verdict} ${id}:\n`)
      printNote(formatUpdateCommand(program, temporal, approval, `'${JSON.stringify(input)}'`))
      printNote('\nThe command above prints the result. "nightshift approvals show" prints it too.')
    })
}

/**
 * Finds the `temporal` program of the local start. Otherwise returns `temporal`, which is then
 * found in the PATH.
 */
export async function findTemporalProgram(run: LocalRun | null): Promise<string> {
  // Searches only for the program of an embedded server, because another search would start a
  // download.
  if (!run?.temporalUiUrl) return 'temporal'
  try {
    return (await findTemporalCli({ rootDir, env: process.env })).path
  } catch {
    return 'temporal'
  }
}

/**
 * Formats the shell command that decides through Temporal, on several lines. It sends an Update,
 * which returns a result, unlike a Signal. `input` is quoted JSON. `temporal` reads TLS and keys
 * from the same variables as Nightshift.
 */
export function formatUpdateCommand(
  program: string,
  { address, namespace }: Pick<TemporalSettings, 'address' | 'namespace'>,
  approval: Pick<ApiApproval, 'incidentId' | 'attempt'>,
  input: string,
): string {
  return [
    `${/^[\w./-]+$/.test(program) ? program : `'${program.replaceAll("'", `'\\''`)}'`} workflow update execute`,
    `--address ${address}${namespace === 'default' ? '' : ` --namespace ${namespace}`}`,
    `--workflow-id ${investigationId(approval)}`,
    '--name decide',
    `--input ${input}`,
  ].join(' \\\n  ')
}
