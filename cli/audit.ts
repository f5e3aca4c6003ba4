import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { changeSources, nearChange, type StoredChange, storedChange } from '../domain/change.ts'
import { parseTime } from '../domain/format.ts'
import { auditRow } from '../domain/operator.ts'
import { parseResourceKey, type ResourceRef, resourceKey } from '../domain/registry.ts'
import { parseDuration } from '../domain/source.ts'
import { type ApiClient, CommandFailed, listAll } from './api.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from './connection.ts'
import { formatMoment, formatTable } from './ui/table.ts'
import { inert, paint, parseOneOf, parseWholeNumber, print, printJson, printNote } from './ui/terminal.ts'

export function addAuditCommand(program: Command): void {
  const parent = program
    .command('audit')
    .description('who did what')
    .addHelpText('after', '\nExample:\n  nightshift audit list --who anna --what approval')
  addListCommand(parent)
}

// Loose, so that fields of a newer API still reach --json.
const auditEntry = auditRow.pick({ at: true, who: true, what: true, subject: true, detail: true }).loose()

type ListOptions = ConnectionOptions & { who?: string; what?: string; since?: string; limit: number }

function addListCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('list')
      .description('decisions, settings, tokens, people, sign-ins and what looked like an attack, newest first')
      .option('--who <name>', 'of this person only')
      .option(
        '--what <word>',
        'as token.revoked, or its first part: approval, config, device, grant, incident, operator, security, sign_in, token',
      )
      .option('--since <time>', 'since this time, as 2026-11-21 or 2026-11-21T01:00:00Z', parseMoment)
      .option('--limit <n>', 'how many at most', parseWholeNumber, 50),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift audit list --what sign_in.refused\n  nightshift audit list --who anna --json',
    )
    .action(async ({ who, what, since, limit, ...options }: ListOptions) => {
      const { api } = connect(options)
      const asked = Object.entries({ who, what, since }).filter(
        (pair): pair is [string, string] => pair[1] !== undefined,
      )
      const query = new URLSearchParams([...asked, ['limit', String(Math.min(limit, 200))]])
      const entries = await listAll(api, `/api/v1/audit?${query}`, auditEntry, limit)
      if (options.json) return printJson(entries)
      if (entries.length === 0) return printNote('Nothing.')
      const rows = entries.map((each) => [
        formatMoment(each.at),
        inert(each.who),
        inert(each.what),
        inert(each.subject),
        inert(each.detail),
      ])
      print(formatTable(['WHEN', 'WHO', 'WHAT', 'ABOUT', 'DETAIL'], rows, 4))
    })
}

function parseMoment(text: string): string {
  const at = parseTime(text)
  if (Number.isNaN(at)) throw new InvalidArgumentError('It takes a time on a day that exists, as 2026-11-21T01:00:00Z.')
  return new Date(at).toISOString()
}

const difference = z.looseObject({ subject: z.string(), what: z.string() })
const page = z.looseObject({
  incidents: z.number().int(),
  events: z.number().int(),
  differences: z.array(difference),
  nextCursor: z.string().nullable(),
})
const chain = z.looseObject({
  ok: z.boolean(),
  rows: z.number().int(),
  headHash: z.string(),
  problem: z.object({ seq: z.number().int(), what: z.string() }).nullable(),
})

type Options = ConnectionOptions & { all?: boolean; head?: string }
type Verified = {
  incidents: number
  events: number
  differences: z.infer<typeof difference>[]
  audit: z.infer<typeof chain>
}

/** How often long work reports its progress on stderr. */
const progressEveryMs = 2_000
/** Incidents per request: few, so that the API answers in time even when their logs are long. */
const pageSize = 20

export function addVerifyCommand(root: Command): void {
  withConnectionOptions(
    root
      .command('verify')
      .description('check stored rows against the log, and the log and the audit against their hash chains')
      .option('--all', 'every incident with its approvals and effects, every standing grant, and the audit')
      .option('--head <hash>', 'an earlier head of the audit, which must still be in the chain'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift verify --all\n  nightshift verify --all --head 9f86d081… --json\n\nOne incident alone: nightshift incidents verify ID',
    )
    .action(async ({ all, head, ...options }: Options) => {
      if (!all) throw new CommandFailed('usage', 'Give --all, or verify one incident: nightshift incidents verify ID')
      const { api } = connect(options)
      const verified = { ...(await verifyIncidents(api)), audit: await verifyAudit(api, head) }
      const ok = verified.differences.length === 0 && verified.audit.ok
      if (options.json) printJson({ ok, ...verified })
      else print(formatReport(verified, head))
      if (!ok) throw new CommandFailed('error', '')
    })
}

async function verifyIncidents(api: ApiClient): Promise<Omit<Verified, 'audit'>> {
  const verified: Omit<Verified, 'audit'> = { incidents: 0, events: 0, differences: [] }
  let reportedAt = Date.now()
  let cursor: string | null = null
  do {
    const query = new URLSearchParams({ limit: String(pageSize), ...(cursor ? { cursor } : {}) })
    const answer: z.infer<typeof page> = page.parse(await api.get(`/api/v1/verify?${query}`))
    verified.incidents += answer.incidents
    verified.events += answer.events
    verified.differences.push(...answer.differences)
    cursor = answer.nextCursor
    if (cursor && Date.now() - reportedAt > progressEveryMs) {
      printNote(
        `${verified.incidents} incidents, ${verified.events} rows so far: ${verified.differences.length} differences.`,
      )
      reportedAt = Date.now()
    }
  } while (cursor)
  return verified
}

async function verifyAudit(api: ApiClient, head: string | undefined): Promise<z.infer<typeof chain>> {
  const query = head ? `?${new URLSearchParams({ head })}` : ''
  return chain.parse(await api.get(`/api/v1/audit/verify${query}`))
}

function formatReport({ incidents, events, differences, audit }: Verified, head: string | undefined): string {
  const lines =
    differences.length === 0
      ? [
          `${paint('green', '✔')} ${incidents} incidents agree with their ${events} rows, and so do approvals, effects and grants.`,
        ]
      : [
          `${paint('red', '✖')} ${differences.length} differences in ${incidents} incidents with ${events} rows:`,
          ...differences.map(({ subject, what }) => `  ${inert(subject)}: ${inert(what)}`),
        ]
  if (audit.problem) {
    lines.push(
      `${paint('red', '✖')} The chain of the audit does NOT hold at row ${audit.problem.seq}: ${inert(audit.problem.what)}`,
    )
  } else {
    lines.push(
      `${paint('green', '✔')} The chain of the audit holds: ${audit.rows} rows.`,
      `  head ${inert(audit.headHash)}`,
    )
    if (head) lines.push('  The hash you named is in it, so nothing up to there was removed or rewritten.')
  }
  return lines.join('\n')
}

export function addChangesCommand(program: Command): void {
  const parent = program
    .command('changes')
    .description('what was deployed or configured')
    .addHelpText('after', '\nExample:\n  nightshift changes list --resource node:web-1')
  addChangesList(parent)
}

type ChangesOptions = ConnectionOptions & {
  resource?: ResourceRef
  window?: string
  source?: string
  unmatched?: boolean
  q?: string
  limit: number
}

function parseResource(text: string): ResourceRef {
  const ref = parseResourceKey(text)
  if (!ref) throw new InvalidArgumentError('It takes kind:id, as node:web-1.')
  return ref
}

function parseWindow(text: string): string {
  if (parseDuration(text) === null) throw new InvalidArgumentError('It takes a duration, as 6h.')
  return text
}

function addChangesList(parent: Command): void {
  withConnectionOptions(
    parent
      .command('list')
      .description('changes by their moment, newest first')
      .option('--resource <kind:id>', 'of this, and of what it runs on or depends on', parseResource)
      .option('--window <duration>', 'with --resource: how far back, 7d unless said', parseWindow)
      .option('--source <name>', changeSources.join(', '), parseOneOf(changeSources))
      .option('--unmatched', 'only those for which no resource was found, and why')
      .option('--q <text>', 'only those with this text in title, author or revision')
      .option('--limit <n>', 'how many at most', parseWholeNumber, 50),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift changes list --resource node:web-1\n  nightshift changes list --unmatched',
    )
    .action(async (options: ChangesOptions) => {
      const changes = options.resource ? await readNear(options, options.resource) : await readAll(options)
      if (options.json) return printJson(changes)
      if (changes.length === 0) return printNote('No change. Who deploys can report it: nightshift ingest change FILE.')
      print(formatTable(['WHEN', 'RESOURCE', 'CHANGE'], changes.map(toRow), 3))
    })
}

async function readNear({ limit, ...options }: ChangesOptions, { kind, id }: ResourceRef): Promise<StoredChange[]> {
  const { source, unmatched, q } = options
  if (source !== undefined || unmatched || q !== undefined)
    throw new CommandFailed('usage', '--resource goes with --window and --limit alone.')
  const { api } = connect(options)
  const query = new URLSearchParams({ window: options.window ?? '7d' })
  const path = `/api/v1/inventory/resources/${kind}/${encodeURIComponent(id)}/changes?${query}`
  const { items } = z.object({ items: z.array(nearChange.loose()) }).parse(await api.get(path))
  return items.slice(0, limit)
}

async function readAll({ source, unmatched, q, limit, window, ...options }: ChangesOptions): Promise<StoredChange[]> {
  if (window !== undefined) throw new CommandFailed('usage', '--window goes with --resource.')
  const { api } = connect(options)
  const query = new URLSearchParams({
    ...(source && { source }),
    ...(unmatched && { unmatched: 'true' }),
    ...(q && { q }),
    limit: String(Math.min(limit, 200)),
  })
  return await listAll(api, `/api/v1/changes?${query}`, storedChange.loose(), limit)
}

function toRow({ at, resource, why, title, author, revision, url }: StoredChange): string[] {
  const more = [author && `by ${author}`, revision && `at ${revision.slice(0, 12)}`, url].filter(Boolean).join(', ')
  return [
    formatMoment(at),
    inert(resource ? resourceKey(resource) : `(none: ${why})`),
    inert(more === '' ? title : `${title} (${more})`),
  ]
}
