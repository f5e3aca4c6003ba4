import { createWriteStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { text as readText } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { type ServedBrief, servedBrief } from '../../domain/brief.ts'
import { type CardSectionName, shortSections } from '../../domain/card-sections.ts'
import { formatNumber, formatSpan } from '../../domain/format.ts'
import { formatAlsoAsked, formatReversible } from '../../domain/format-approval.ts'
import { type Postmortem, parsePostmortem, postmortem } from '../../domain/postmortem.ts'
import { formatDollars } from '../../domain/price.ts'
import { alertWords, causeWords, describeLooks, doneWords } from '../../domain/status-words.ts'
import type { ApiClient } from '../api.ts'
import { type CliCommand, type ConnectionOptions, commandLine } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import type { ApiIncident } from '../read-api.ts'
import { formatMoment } from '../ui/table.ts'
import { getTerminalWidth, inert, paint, parseOneOf, print, printJson, printNote, wrap } from '../ui/terminal.ts'

/** Reads the brief of an incident. Throws CommandFailed if the API has no such incident. */
export async function readBrief(api: ApiClient, id: string): Promise<ServedBrief> {
  return servedBrief.parse(await api.get(`/api/v1/incidents/${encodeURIComponent(id)}/brief`))
}

const width = 10

function formatLine(name: string, texts: readonly string[]): string[] {
  const room = getTerminalWidth() - width - 4
  return texts.map(
    (text, at) => `  ${paint('bold', (at === 0 ? name : '').padEnd(width))} ${wrap(text, room, ' '.repeat(width + 3))}`,
  )
}

const formatRows = (rows: readonly number[]) =>
  rows.length === 0
    ? ''
    : ` (${rows
        .slice(0, 4)
        .map((seq) => `#${seq}`)
        .join(', ')})`

/**
 * Formats a brief with its most important sentences first: start, cause, impact, actions, open
 * request, next step. Each sentence names its rows of the log.
 */
export function formatBrief(brief: ServedBrief, { owner }: ApiIncident, now = Date.now()): string {
  const { since, alert, resource, page, cause, impact, done, asked, next, spent } = brief
  const how = [causeWords[cause.state], cause.certainty].filter(Boolean).join(', ')
  const looked = describeLooks(brief)
  const money = spent.dollars > 0 ? `, ${formatDollars(spent.dollars)}` : ''
  return [
    ...formatLine('since', [
      `${formatMoment(since.at)}, ${formatSpan(now - Date.parse(since.at))}; ${alertWords[alert.state]}`,
    ]),
    ...(resource
      ? formatLine('now', [
          paint(alert.state === 'firing' ? 'yellow' : 'reset', inert(resource.text)) + formatRows(resource.rows),
        ])
      : []),
    ...(page ? formatLine('page', [inert(page.text) + formatRows(page.rows)]) : []),
    ...formatLine('cause', [`${inert(cause.text)}${how && ` [${how}]`}${formatRows(cause.rows)}`]),
    ...(impact ? formatLine('impact', [inert(impact.text) + formatRows(impact.rows)]) : []),
    ...formatLine('done', [
      ...(looked ? [looked] : []),
      ...done.map(({ text, outcome, rows }) => `${doneWords[outcome]}: ${inert(text)}${formatRows(rows)}`),
    ]),
    ...(asked ? formatAsked(asked, brief.alsoAsked) : formatLine('next', [inert(next.text) + formatRows(next.rows)])),
    ...formatLine('owner', [owner ? inert(owner.name) : 'nobody']),
    ...formatLine('spent', [
      `${spent.turns} ${spent.turns === 1 ? 'turn' : 'turns'}, ${formatNumber(spent.tokens)} tokens${money}`,
    ]),
  ].join('\n')
}

/** Short names of the sections of an approval, for the narrow column of a brief. */
const shortNames: Partial<Record<CardSectionName, string>> = { approve: 'if yes', deny: 'if no', wait: 'if nobody' }

function formatAsked(asked: NonNullable<ServedBrief['asked']>, alsoAsked: number): string[] {
  const { id, dryRun, risk, reversible } = asked
  return [
    ...formatLine('approval', [
      `${inert(dryRun.summary)}${formatAlsoAsked(alsoAsked)} [${risk} risk, ${formatReversible(reversible)}]`,
      commandLine(`approvals show ${inert(id)}`),
    ]),
    ...shortSections(asked, formatMoment).flatMap(({ name, sentences }) =>
      formatLine(shortNames[name] ?? name, sentences),
    ),
  ]
}

type PostmortemOptions = ConnectionOptions & { edit?: string; markdown?: true }

const pathOf = (id: string) => `/api/v1/incidents/${encodeURIComponent(id)}`

export function addPostmortemCommand(parent: CliCommand): void {
  parent
    .command('postmortem')
    .description('the postmortem of an incident: each sentence names its rows of the log')
    .argument('<id>', 'the incident, such as inc_…')
    .option('--markdown', 'the whole postmortem as Markdown, with the log as an appendix')
    .option('--edit <file>', 'write the sections of this Markdown file that differ, under your name; - reads stdin')
    .connected(
      '\nSections begin with headings, as "## Cause". An empty section is made from the rows again.\nThe log does not change.\n\nExample:\n  nightshift incidents postmortem inc_01k… --markdown > postmortem.md\n  nightshift incidents postmortem inc_01k… --edit postmortem.md',
    )
    .calls(async (api, id: string, { edit, markdown, ...options }: PostmortemOptions) => {
      if (edit !== undefined) {
        const written = await writeFrom(api, id, edit)
        return options.json ? printJson(written.found) : printNote(written.note)
      }
      if (markdown) return await writeFile(api, id, 'md')
      const found = await readPostmortem(api, id)
      if (options.json) printJson(found)
      else printPostmortem(found)
    })
}

async function readPostmortem(api: ApiClient, id: string): Promise<Postmortem> {
  return postmortem.loose().parse(await api.get(`${pathOf(id)}/postmortem`))
}

/** Writes the sections that a file changes. An exported file names the version it changes. */
async function writeFrom(api: ApiClient, id: string, file: string): Promise<{ found: Postmortem; note: string }> {
  const found = await readPostmortem(api, id)
  const wanted = parsePostmortem(file === '-' ? await readText(process.stdin) : await readFile(file, 'utf8'), found)
  if (!wanted.ok) throw new CommandFailed('error', inert(wanted.reason))
  const names = found.sections.filter(({ section }) => wanted.sections[section] !== undefined)
  if (names.length === 0) return { found, note: 'The file has no difference, so nothing was written.' }
  const { version, sections } = wanted
  const next = postmortem.loose().parse(await api.post(`${pathOf(id)}/postmortem`, { version, sections }))
  const written = names.map(({ title }) => title).join(', ')
  return {
    found: next,
    note: `Written: ${written}. This is version ${next.version} of the postmortem. To read it: "${commandLine(`incidents postmortem ${id}`)}".`,
  }
}

function printPostmortem({ title, sections, timeline, left, rows }: Postmortem): void {
  print(paint('bold', inert(title)))
  for (const { title: name, sentences, edited } of sections) {
    print(`\n${paint('bold', name)}`)
    if (edited) {
      print(`  ${inert(edited.text, { lines: true }).trim().replaceAll('\n', '\n  ')}`)
      print(
        paint(
          'dim',
          `  Edited by ${inert(edited.by)} at ${formatMoment(edited.at)}; --json has the text from the rows.`,
        ),
      )
      continue
    }
    if (sentences.length === 0) print(paint('dim', '  Nobody has edited this.'))
    let attempt: number | null = null
    for (const each of sentences) {
      if (each.attempt !== null && each.attempt !== attempt) print(`  Attempt ${each.attempt}`)
      attempt = each.attempt
      const seen = each.rows.map((seq) => `#${seq}`).join(' ')
      print(`  ${wrap(`${inert(each.text)} ${seen}`.trim(), getTerminalWidth() - 4, '    ')}`)
    }
  }
  print(`\n${paint('bold', 'Timeline')}`)
  for (const { seq, at, text } of timeline)
    print(`  ${wrap(`${formatMoment(at)}  #${seq} ${inert(text)}`, getTerminalWidth() - 4, '    ')}`)
  print(
    paint(
      'dim',
      `\n  ${left > 0 ? `${left} more key rows, and all ` : ''}${rows} rows are in the log: incidents show.`,
    ),
  )
}

type ExportOptions = ConnectionOptions & { format: 'json' | 'csv' | 'md'; output?: string }

export function addExportCommand(parent: CliCommand): void {
  parent
    .command('export')
    .description('the incident as a file: json, csv, or md, a postmortem')
    .argument('<id>', 'the incident, such as inc_…')
    .option('--format <format>', 'json, csv or md', parseOneOf(['json', 'csv', 'md']), 'md')
    .option('-o, --output <file>', 'the file to write (default stdout)')
    .connected('\nExample:\n  nightshift incidents export inc_01k… --format md -o postmortem.md')
    .calls(async (api, id: string, options: ExportOptions) => {
      await writeFile(api, id, options.json ? 'json' : options.format, options.output)
    })
}

/** Writes the bytes unchanged to a file. At a terminal they are made harmless. */
async function writeFile(api: ApiClient, id: string, format: ExportOptions['format'], file?: string): Promise<void> {
  const response = await api.open(`${pathOf(id)}/export?format=${format}`)
  if (file && response.body) {
    await pipeline(Readable.fromWeb(response.body), createWriteStream(file))
    return printNote(`Written to ${file}.`)
  }
  const text = await response.text()
  process.stdout.write(process.stdout.isTTY ? inert(text, { lines: true }) : text)
}
