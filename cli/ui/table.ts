import { stripVTControlCharacters } from 'node:util'
import Table from 'cli-table3'
import type { ApprovalStatus } from '../../domain/approval.ts'
import { formatMoment as formatMomentIn, type TimeZone, truncate } from '../../domain/format.ts'
import type { IncidentStatus, Severity } from '../../domain/incident.ts'
import type { DryRunPlan } from '../../domain/placement.ts'
import type { Risk } from '../../domain/tool.ts'
import { getTerminalWidth, inert, paint, print, printJson, printNote } from './terminal.ts'

let zone: TimeZone = 'local'

/** Formats all times in UTC from now on, for `--utc`. */
export function useUtc(): void {
  zone = 'utc'
}

/** Formats a time for people, to the second: local with its offset, or UTC after `useUtc`. */
export function formatMoment(iso: string): string {
  return formatMomentIn(iso, zone)
}

type Style = Parameters<typeof paint>[0]

const stateStyles: Record<Severity | IncidentStatus | ApprovalStatus | Risk, Style> = {
  critical: ['bold', 'red'],
  warning: 'yellow',
  info: 'cyan',
  open: 'yellow',
  investigating: 'cyan',
  awaiting_approval: ['bold', 'magenta'],
  resolved: 'green',
  escalated: ['bold', 'red'],
  cancelled: 'dim',
  pending: ['bold', 'magenta'],
  approved: 'green',
  denied: 'red',
  expired: 'red',
  withdrawn: 'dim',
  consumed: 'green',
  none: 'dim',
  low: 'green',
  medium: 'yellow',
  high: ['bold', 'red'],
}

/** Colours a word as the state `state`, by default the name of the state. */
export function paintState(state: keyof typeof stateStyles, word: string = state): string {
  return paint(stateStyles[state] ?? 'reset', word)
}

/** Columns below which the last column is written on a separate line. */
const minReadableWidth = 40

/** The fewest letters of an id that a list shows after the prefix. */
const minIdLetters = 8

/**
 * Shortens the ids of a list at a terminal: eight letters, or as many as distinguish its ids,
 * without a prefix that all ids share. Commands accept these short ids (complete-ids.ts). A pipe
 * gets complete ids.
 */
export function shortenIds(ids: readonly string[]): (id: string) => string {
  if (!process.stdout.isTTY) return inert
  const different = new Set(ids)
  const longest = Math.max(0, ...ids.map((id) => id.length))
  let letters = minIdLetters
  const afterPrefix = (id: string) => id.indexOf('_') + 1
  const isMixed = new Set(ids.map((id) => id.slice(0, afterPrefix(id)))).size > 1
  const cut = (id: string) => id.slice(isMixed ? 0 : afterPrefix(id), afterPrefix(id) + letters)
  while (letters < longest && new Set([...different].map(cut)).size < different.size) letters += 1
  return (id) => inert(cut(id))
}

type Columns<T> = Record<string, (each: T) => string>

/**
 * Prints items as JSON if requested. Without items, prints the text `none`, if given. Otherwise
 * prints a table whose last column may be cut. `remark` is on a separate line at a terminal, and in
 * brackets in a pipe.
 */
export function printList<T>(
  { json }: { json?: boolean },
  items: readonly T[],
  none: string | null,
  columns: Columns<T>,
  remark: (each: T) => string = () => '',
): void {
  if (json) printJson(items)
  else if (items.length === 0 && none !== null) printNote(none)
  else {
    const rows = items.map((each) => Object.values(columns).map((column) => column(each)))
    const heads = Object.keys(columns)
    print(formatTable(heads, rows, heads.length - 1, items.map(remark)))
  }
}

/**
 * Formats rows in columns that fit the terminal. Cells must be inert. Column number `flexible` is
 * cut to fit, and every other column is as wide as its widest cell. A last column that is too
 * narrow to read, and a remark, are written below each row. Without a terminal no cell is cut.
 */
export function formatTable(head: string[], rows: string[][], flexible: number, remarks: string[] = []): string {
  if (!process.stdout.isTTY) {
    const whole = rows.map((row, index) => (remarks[index] ? row.with(-1, `${row.at(-1)} (${remarks[index]})`) : row))
    return drawRows([head, ...whole], widths(head, whole)).join('\n')
  }
  const wide = widths(head, rows)
  const others = wide.reduce((sum, each, index) => sum + (index === flexible ? 0 : each + 2), 0)
  const room = getTerminalWidth() - others
  const needed = wide[flexible] ?? 0
  const isBelow = flexible === head.length - 1 && needed > room && room < minReadableWidth
  wide[flexible] = Math.max(10, Math.min(needed, room))
  const [top, ...lines] = isBelow
    ? drawRows([head.slice(0, -1), ...rows.map((row) => row.slice(0, -1))], wide.slice(0, -1))
    : drawRows([head, ...rows], wide)
  const below = (text: string | undefined) => (text ? [`  ${truncate(text, getTerminalWidth() - 2)}`] : [])
  return [
    top,
    ...lines.flatMap((line, index) => [
      line,
      ...below(isBelow ? rows[index]?.at(-1) : ''),
      ...below(remarks[index]).map((remark) => paint('dim', remark)),
    ]),
  ].join('\n')
}

const widths = (head: string[], rows: string[][]): number[] =>
  head.map((title, index) => Math.max(title.length, ...rows.map((row) => getVisibleLength(row[index]))))

function drawRows([head = [], ...rows]: string[][], wide: number[]): string[] {
  const made = new Table({
    chars: Object.fromEntries(borders.map((name) => [name, ''])),
    style: { 'padding-left': 0, 'padding-right': 2, head: [], border: [] },
    colWidths: wide.map((each) => each + 2),
    colAligns: wide.map(() => 'left'),
  })
  made.push(
    head.map((title) => paint('dim', title)),
    ...rows,
  )
  return made
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
}

function getVisibleLength(cell: string | undefined): number {
  return stripVTControlCharacters(cell ?? '').length
}

const borders = [
  'top',
  'top-mid',
  'top-left',
  'top-right',
  'bottom',
  'bottom-mid',
  'bottom-left',
  'bottom-right',
].concat(['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'])

/**
 * Formats a table of plan steps: which VM moves where, in which wave, and after which steps. Older
 * plans have no waves.
 */
export function formatSteps(steps: DryRunPlan['steps']): string {
  const hasWaves = steps.some(({ wave }) => wave !== null)
  const rows = [...steps]
    .sort((a, b) => (a.wave ?? 0) - (b.wave ?? 0) || a.step - b.step)
    .map(({ step, wave, action, vm, from, to, needs }) => {
      const [before, after] = hasWaves ? [[String(wave ?? '')], [needs.join(', ')]] : [[], []]
      return [String(step), ...before, action, vm, from ?? '(nowhere)', `→ ${to}`, ...after].map((cell) => inert(cell))
    })
  const head = hasWaves ? ['STEP', 'WAVE', 'DO', 'VM', 'FROM', '→ TO', 'AFTER'] : ['STEP', 'DO', 'VM', 'FROM', '→ TO']
  return formatTable(head, rows, hasWaves ? 6 : 3)
}
