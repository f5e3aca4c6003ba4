import { readFileSync } from 'node:fs'
import { InvalidArgumentError } from 'commander'
import { capitalize } from '../domain/format.ts'
import { manualChangeType } from '../domain/manual-change.ts'
import { parseResourceKey, type ResourceRef } from '../domain/registry.ts'
import { tellSilence } from '../domain/silence.ts'
import {
  describeSitePolicy,
  type SiteExplanation,
  type SiteLint,
  type SitePolicyState,
  siteExplanation,
  siteLint,
  sitePolicyState,
} from '../domain/site-policy-state.ts'
import { maxPolicyBytes, readSitePolicy } from '../safety/site/read.ts'
import { clockChangesIn, compileWindow } from '../safety/site/windows.ts'
import { toolFacts } from '../tools/registry.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { connect } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { readIncident } from './read-api.ts'
import { formatTable } from './ui/table.ts'
import { inert, paint, print, printJson, printNote } from './ui/terminal.ts'

/**
 * Commands for the site policy: it is checked, shown, explained, and accepted if it widens
 * permissions.
 */
export function addSitePolicyCommands(parent: CliCommand): void {
  addLint(parent)
  addExplain(parent)
  addShow(parent)
  addAccept(parent)
}

/** Reads a policy file, at most one byte more than the API accepts. */
export function readPolicyText(path: string): Buffer {
  try {
    const bytes = readFileSync(path)
    return bytes.length > maxPolicyBytes ? bytes.subarray(0, maxPolicyBytes + 1) : bytes
  } catch (error) {
    const { code = 'failed' } = error as { code?: string }
    throw new CommandFailed('usage', `${inert(path)} cannot be read (${code}).`)
  }
}

type LintOptions = ConnectionOptions & { site?: true }

function addLint(parent: CliCommand): void {
  parent
    .command('lint')
    .argument('[file]', "a file as policy.yaml; without a file: the site's waiting policy, or the policy in force")
    .option('--site', 'also compare the file with the site: names, labels, people and types that do not exist there')
    .description("every fault of a site's policy, with its line and remedy")
    .connected(
      '\nExample:\n  nightshift policy lint policy.yaml\n  nightshift policy lint policy.yaml --site\n  nightshift policy lint\n\nExits with 1 if the file would be refused; a note refuses nothing. Without --site a file is checked offline.',
    )
    .action(async (file: string | undefined, { site, ...options }: LintOptions) => {
      const bytes = file === undefined ? null : readPolicyText(file)
      const read = bytes && readSitePolicy(bytes, toolFacts, null)
      const isAsked = file === undefined || (site && read?.ok)
      const text = bytes ? { text: bytes.toString('utf8') } : {}
      const answer = isAsked ? siteLint.parse(await connect(options).api.post('/api/v1/policy/lint', text)) : null
      const faults = (read && !read.ok ? read.faults : answer?.faults) ?? []
      const notes = answer?.notes ?? []
      const clocks = read?.ok && !answer ? clockNotes(read.policy) : []
      if (options.json) printJson({ ok: faults.length === 0, faults, notes: clocks, ...(answer && { site: notes }) })
      else {
        const place = inert(
          file ?? { text: '', waiting: 'the waiting policy', in_force: 'the policy in force' }[answer?.of ?? 'text'],
        )
        printFaults(place, paint('red', '✖'), faults)
        printFaults(place, paint('yellow', '!'), notes)
        for (const note of clocks) print(`${place}: ${paint('yellow', '!')} ${inert(note)}.`)
        if (faults.length === 0)
          printNote(summaryOf(read?.ok ? read.compiled.digest : answer?.digest, answer, notes.length))
      }
      if (faults.length > 0) throw new CommandFailed('error', '')
    })
}

function printFaults(place: string, mark: string, faults: SiteLint['faults']): void {
  for (const { line, why, remedy } of faults)
    print(`${place}:${line}: ${mark} ${inert(why)}. ${capitalize(inert(remedy))}.`)
}

function summaryOf(digest: string | null | undefined, answer: SiteLint | null, notes: number): string {
  const held =
    answer === null
      ? 'Nightshift would accept this policy. Add --site to compare it with your site too.'
      : notes === 0
        ? 'Everything that the policy names exists.'
        : 'Nightshift would accept this policy.'
  return `Digest ${digest?.slice(0, 12)}. ${held}`
}

/** Describes the nights in which a clock change shortens a window. */
function clockNotes({ windows }: Extract<ReturnType<typeof readSitePolicy>, { ok: true }>['policy']): string[] {
  return Object.entries(windows).flatMap(([name, window]) => {
    const compiled = compileWindow(name, window)
    return 'why' in compiled ? [] : clockChangesIn(compiled, Date.now()).map((said) => `the window ${name}: ${said}`)
  })
}

function parseTarget(text: string, before: ResourceRef[] = []): ResourceRef[] {
  const target = parseResourceKey(text)
  if (!target) throw new InvalidArgumentError('Write a resource as KIND:ID, such as vm:vm-101.')
  return [...before, target]
}

type ExplainOptions = ConnectionOptions & {
  on?: ResourceRef[]
  type?: string
  at?: string
  file?: string
  incident?: string
}

function addExplain(parent: CliCommand): void {
  parent
    .command('explain')
    .argument('<tool>', 'as vm_start')
    .description('which rule of the policy decides about a call, and why the earlier rules do not decide')
    .option('--on <kind:id>', 'a resource that the call would change; repeatable', parseTarget)
    .option('--type <type>', 'type of the incident (default: the type of --incident, or manual_change)')
    .option('--incident <id>', 'the incident of the call; its alerts may be silenced now')
    .option('--at <time>', 'at this time, such as 2026-12-24T02:00:00Z')
    .option('--file <file>', 'with this file instead of the policy in force')
    .connected('\nExample:\n  nightshift policy explain vm_start --on vm:vm-101 --at 2026-12-24T02:00:00Z')
    .action(async (tool: string, options: ExplainOptions) => {
      const { on = [], at, file, incident } = options
      if (!toolFacts.has(tool)) throw new CommandFailed('usage', `There is no tool ${inert(tool)}.`)
      const text = file === undefined ? {} : { text: readPolicyText(file).toString('utf8') }
      const { api } = connect(options)
      const type = options.type ?? (incident ? (await readIncident(api, incident)).type : manualChangeType)
      const call = {
        ...{ tool, targets: on, type, incidentId: incident },
        ...(at !== undefined && { at }),
      }
      const answer = (await api.post('/api/v1/policy/explain', { calls: [call], ...text })) as {
        items: unknown[]
      }
      const explained = siteExplanation.parse(answer.items[0])
      if (options.json) return printJson(explained)
      printExplanation(explained, toolFacts.get(tool)?.effect === 'write')
    })
}

function printExplanation({ write, look, rules, silence, noSilence }: SiteExplanation, isWrite: boolean): void {
  const reasons = {
    resource: 'another resource',
    labels: 'other labels',
    type: 'another type',
    during: 'no time window applies',
    silenced: 'no alert is silenced',
  }
  const rows = rules.map(({ rule, line, action, whyNot }) => [
    String(line),
    inert(rule),
    action,
    whyNot === null ? 'fits' : (reasons[whyNot as keyof typeof reasons] ?? whyNot),
  ])
  if (rows.length > 0) print(formatTable(['LINE', 'RULE', 'ACTION', 'FITS'], rows, 2))
  if (silence) print(inert(tellSilence(silence)))
  if (noSilence !== null) print(`${inert(noSilence)}.`)
  const decision = isWrite ? write : (look ?? write)
  const commit = decision?.commit ? ` of commit ${decision.commit.slice(0, 12)}` : ''
  if (decision === null) print('No rule of the policy decides. The built-in rules decide.')
  else print(`${decision.action}: line ${decision.line}, "${inert(decision.rule)}"${commit}.`)
}

function addShow(parent: CliCommand): void {
  parent
    .command('show')
    .description("the site's policy in force, the policy that waits for an admin, and why the newest file was refused")
    .connected('\nExample:\n  nightshift policy show')
    .action(async (options: ConnectionOptions) => {
      const state = sitePolicyState.parse(await connect(options).api.get('/api/v1/policy'))
      if (options.json) return printJson(state)
      printState(state)
    })
}

function printState(state: SitePolicyState): void {
  print(inert(describeSitePolicy(state).detail))
  const { inForce, waiting, reading } = state
  if (inForce) {
    const who =
      inForce.acceptedBy === null
        ? 'without an acceptance, because it allowed nothing more than the policy before'
        : `accepted by ${inert(inForce.acceptedBy)}`
    printNote(`In force since ${inForce.inForceAt}, ${who}.`)
  }
  for (const each of waiting?.widens ?? []) print(`  widens: ${inert(each)}`)
  for (const { line, why, remedy } of reading?.faults ?? [])
    print(`  line ${line}: ${inert(why)}. ${capitalize(inert(remedy))}.`)
}

function addAccept(parent: CliCommand): void {
  parent
    .command('accept')
    .argument('<digest>', 'the digest of the policy, as "policy show" prints it; the first twelve digits are enough')
    .description('put a policy in force that waits because it allows more than the present policy')
    .connected('\nExample:\n  nightshift policy accept 9f86d081884c')
    .action(async (digest: string, options: ConnectionOptions) => {
      const answer = await connect(options).api.post('/api/v1/policy/accept', { digest })
      const state = sitePolicyState.parse(answer)
      if (options.json) return printJson(state)
      printState(state)
    })
}
