import { formatNumber } from '../domain/format.ts'
import {
  causeGrades,
  type PairHistory,
  shadowGrades,
  type TrustCall,
  type TrustLevel,
  type TrustRecord,
  trustLevels,
  trustWords,
} from '../domain/trust.ts'
import { incidentTrust, pairHistory, trustList } from '../domain/trust-answer.ts'
import { describeCall, describeStep, formatInterval } from '../domain/trust-words.ts'
import type { ApiClient } from './api.ts'
import { type CliCommand, type ConnectionOptions, commandLine } from './connection.ts'
import { formatMoment, formatTable, printList } from './ui/table.ts'
import {
  confirm,
  inert,
  isAskable,
  paint,
  parseOneOf,
  parseWholeNumber,
  print,
  printJson,
  printNote,
} from './ui/terminal.ts'

export function addTrustCommand(root: CliCommand): void {
  const parent = root
    .command('trust')
    .description('what each tool may do without approval, by type of incident, and its record')
    .connected('\nExample:\n  nightshift trust\n  nightshift trust show replication_lag converge_shard')
    .web(() => '/trust')
    .calls(listTrust)
  parent
    .command('show')
    .description('one pair of type and tool: its record, who set its level, and how its calls ended')
    .argument('<type>', 'type of incident')
    .argument('<tool>', 'tool that writes')
    .connected('\nExample:\n  nightshift trust show replication_lag converge_shard')
    .calls(async (api, type: string, tool: string, options: ConnectionOptions) => {
      const pair = await readPair(api, type, tool)
      if (options.json) return printJson(pair)
      printPair(pair)
    })
  parent
    .command('promote')
    .description('show the record of a pair of type and tool, and set its level')
    .argument('<type>', 'type of incident')
    .argument('<tool>', 'tool that writes')
    .requiredOption('--to <level>', trustLevels.join(', '), parseOneOf(trustLevels))
    .requiredOption('--reason <text>', 'reason, recorded in the audit log')
    .option('--yes', 'skip the confirmation; without a terminal the command asks for none')
    .connected(
      '\nExample:\n  nightshift trust promote replication_lag converge_shard --to act --reason "20 of 20 held"',
    )
    .calls(promote)
}

async function listTrust(api: ApiClient, options: ConnectionOptions): Promise<void> {
  const found = trustList.parse(await api.get('/api/v1/trust'))
  if (options.json) return printJson(found)
  printList(options, found.items, 'The agent has proposed no write yet.', {
    LEVEL: (each) => paintLevel(each.level) + (each.cause === 'upgrade' ? ' (to confirm)' : ''),
    RAN: (each) => formatNumber(each.record.ran),
    HELD: (each) => formatNumber(each.record.held),
    LASTED: (each) => formatNumber(each.record.lasted),
    LOST: (each) => formatNumber(each.record.lost),
    WRONG: (each) => formatNumber(each.record.wrong),
    'TO GRADE': (each) => formatNumber(each.record.ungraded),
    'TOOL, IN INCIDENTS OF TYPE': (each) => `${inert(each.tool)}, ${inert(each.type)}`,
  })
  print(paint('dim', `\n  Every other pair: ${found.newPairs}, ${trustWords[found.newPairs]}.`))
}

const levelStyles = { shadow: 'dim', propose: 'yellow', act: 'green' } as const
const paintLevel = (level: TrustLevel) => paint(levelStyles[level], level)

async function readPair(api: ApiClient, type: string, tool: string): Promise<PairHistory> {
  return pairHistory.parse(await api.get(pathOf(type, tool)))
}

const pathOf = (type: string, tool: string) => `/api/v1/trust/${encodeURIComponent(type)}/${encodeURIComponent(tool)}`

function printPair(pair: PairHistory): void {
  const { type, tool, level, cause, risk, record, weeks, steps, calls } = pair
  print(`${paint('bold', inert(tool))} in incidents of type ${paint('bold', inert(type))} (${inert(risk)} risk)`)
  print(`  ${paintLevel(level)}: ${trustWords[level]}`)
  if (cause === 'upgrade')
    printNote(
      `An older version ran this tool without asking. Confirm that level with "${commandLine(`trust promote ${inert(type)} ${inert(tool)} --to act --reason "…"`)}".`,
    )
  print('')
  for (const [name, figure] of figuresOf(record)) print(`  ${name.padEnd(28)} ${figure.padStart(6)}`)
  if (weeks.length > 0) print(`\n${formatWeeks(weeks)}`)
  if (steps.length > 0) print('')
  for (const step of steps) print(`  ${formatMoment(step.at)}  ${inert(describeStep(step))}`)
  if (calls.length > 0) print(`\n${formatCalls(calls)}`)
}

function figuresOf(record: TrustRecord): [string, string][] {
  const { proposed, shadowed, ungraded, approved, denied, ran, held, lasted, lost, right, wrong } = record
  const named = { proposed, 'recorded in shadow': shadowed, '  of these not graded': ungraded, approved, denied, ran }
  const after = { verified: held, lasted, 'failed, or came back': lost }
  const graded = { 'graded right': right, 'graded wrong': wrong }
  return Object.entries({ ...named, ...after, ...graded }).map(([name, count]) => [name, formatNumber(count)])
}

function formatWeeks(weeks: PairHistory['weeks']): string {
  const rows = weeks.map(({ week, right, wrong, low, high }) => [
    inert(week),
    `${right} of ${right + wrong}`,
    formatInterval({ low, high }),
  ])
  return formatTable(['WEEK OF', 'RIGHT', '95 % INTERVAL'], rows, 2)
}

function formatCalls(calls: readonly TrustCall[]): string {
  const rows = calls.map((call) => [formatMoment(call.at), inert(call.incidentId), inert(describeCall(call))])
  return formatTable(['WHEN', 'INCIDENT', 'WHAT BECAME OF IT'], rows, 2)
}

type PromoteOptions = ConnectionOptions & { to: TrustLevel; reason: string; yes?: true }

async function promote(
  api: ApiClient,
  type: string,
  tool: string,
  { to, reason, yes, ...options }: PromoteOptions,
): Promise<void> {
  const before = await readPair(api, type, tool)
  if (!options.json) printPair(before)
  if (!yes && !options.json && isAskable() && !(await confirm(`\nSet the level from ${before.level} to ${to}?`))) return
  const set = pairHistory.parse(await api.post(pathOf(type, tool), { to, reason, seen: before.seen }))
  if (options.json) return printJson(set)
  printNote(`${inert(tool)} in ${inert(type)} is ${set.level}: ${trustWords[set.level]}.`)
}

type GradeOptions = ConnectionOptions & { text?: string; call?: string; attempt?: number }

export function addGradeCommand(parent: CliCommand): void {
  const words = [...new Set<string>([...causeGrades, ...shadowGrades])]
  parent
    .command('grade')
    .description("grade an incident's cause, or a write that was recorded in shadow")
    .argument('<id>', 'the incident, such as inc_…')
    .argument('<verdict>', words.join(', '), parseOneOf(words))
    .option('--text <text>', 'the grade')
    .option('--call <id>', 'a write that was recorded in shadow, such as c4_0')
    .option('--attempt <number>', 'the attempt (default: 1 for a write, the newest for a cause)', parseWholeNumber)
    .connected(
      '\nA wrong cause is no longer a hint or a precedent, and the tools that wrote for it lose trust.\n\nExample:\n  nightshift incidents grade inc_01k… wrong --text "the disk was full"\n  nightshift incidents grade inc_01k… right --call c4_0',
    )
    .calls(async (api, id: string, verdict: string, { text, call, attempt, ...options }: GradeOptions) => {
      const about = call === undefined ? { attempt } : { call: { callId: call, attempt: attempt ?? 1 } }
      const body = { verdict, text, ...about }
      const answer = await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/grade`, body)
      if (options.json) return printJson(answer)
      const left = incidentTrust.parse(answer).shadow.filter(({ grade }) => grade === null)
      printNote(`Noted: ${verdict}.`)
      for (const { callId, tool, summary } of left)
        printNote(`Not graded yet: ${inert(callId)}, ${inert(summary ?? tool)}`)
    })
}
