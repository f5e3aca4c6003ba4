import { formatDollars } from '../../domain/price.ts'
import { isDifferent, type Share, wilson } from '../../domain/share.ts'
import type { EvalRun } from './score.ts'

type EvalRow = {
  name: string
  runs: number
  state: Share
  ending: Share
  /** Runs in which no unsafe act took effect. */
  safe: Share
  tries: number
  letThrough: number
  wrongRefusals: number
  /** Means over the runs. `min`: the mean of the least turns that the scenarios need. */
  turns: number
  min: number | null
  tokens: number
  dollars: number
  approvals: number
  seconds: number
}

/** Summarizes runs in one row. Means are 0 if there are no runs. */
function summarise(name: string, runs: readonly EvalRun[]): EvalRow {
  const share = (isHit: (run: EvalRun) => boolean) => wilson(runs.filter(isHit).length, runs.length)
  const sum = (of: (run: EvalRun) => number) => runs.reduce((total, run) => total + of(run), 0)
  const mean = (of: (run: EvalRun) => number) => (runs.length === 0 ? 0 : sum(of) / runs.length)
  const measured = runs.filter(({ leastTurns }) => leastTurns !== null)
  return {
    name,
    runs: runs.length,
    state: share(({ isStateRight }) => isStateRight),
    ending: share(({ isEndingRight }) => isEndingRight),
    safe: share(({ unsafe }) => unsafe.every(({ isLetThrough }) => !isLetThrough)),
    tries: sum(({ unsafe }) => unsafe.length),
    letThrough: sum(({ unsafe }) => unsafe.filter(({ isLetThrough }) => isLetThrough).length),
    wrongRefusals: sum(({ wrongRefusals }) => wrongRefusals.length),
    turns: mean(({ turns }) => turns),
    min: measured.length === 0 ? null : mean(({ leastTurns }) => leastTurns ?? 0),
    tokens: Math.round(mean(({ tokens }) => tokens)),
    dollars: mean(({ dollars }) => dollars),
    approvals: mean(({ approvals }) => approvals),
    seconds: mean(({ seconds }) => seconds),
  }
}

type Condition = Pick<EvalRun, 'model' | 'mood' | 'people' | 'gateOff'>

/** Describes the conditions of runs. */
function nameCondition({ model, mood, people, gateOff }: Condition): string {
  return [
    mood ? `${model}:${mood}` : model,
    `people ${people}`,
    gateOff ? `without the gate ${gateOff}` : 'guards on',
  ].join(', ')
}

/**
 * Groups runs by condition. Each condition has a table, with a row for each scenario and a row for
 * all scenarios.
 */
function summaryTables(runs: readonly EvalRun[]): { condition: string; rows: EvalRow[] }[] {
  return [...Map.groupBy(runs, nameCondition)].map(([condition, played]) => ({
    condition,
    rows: [
      ...[...Map.groupBy(played, ({ scenario }) => scenario)].map(([name, each]) => summarise(name, each)),
      summarise('all', played),
    ],
  }))
}

const percent = (share: number): string => `${Math.round(share * 100)}`

/** Formats a share, for example as `9 of 10 (60–98 %)`. */
function formatShare({ hits, of, low, high }: Share): string {
  return `${hits} of ${of} (${percent(low)}–${percent(high)} %)`
}

/** Formats a table in Markdown, which is also readable on a terminal. */
function formatTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = head.map((word, at) => Math.max(word.length, ...lines.map((line) => line[at]?.length ?? 0)))
  const row = (cells: readonly string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`
  return [row(head), row(widths.map((width) => '-'.repeat(width))), ...lines.map(row)].join('\n')
}

const heads = ['right state', 'right ending', 'unsafe tries', 'let through', 'wrongly refused']
const useHeads = ['turns', 'least', 'tokens', 'dollars', 'approvals', 'seconds']

function cellsOf(row: EvalRow): string[] {
  return [
    row.name,
    formatShare(row.state),
    formatShare(row.ending),
    ...[row.tries, row.letThrough, row.wrongRefusals].map(String),
    row.turns.toFixed(1),
    row.min?.toFixed(1) ?? '-',
    String(row.tokens),
    formatDollars(row.dollars),
    row.approvals.toFixed(1),
    row.seconds.toFixed(1),
  ]
}

/**
 * Formats all measures: one table for each condition with several scenarios, and one common table
 * for the conditions with a single scenario.
 */
export function formatSummary(runs: readonly EvalRun[]): string {
  const tables = summaryTables(runs)
  const single = tables.filter(({ rows }) => rows.length === 2)
  const wide = tables.filter(({ rows }) => rows.length > 2)
  const several = wide.map(
    ({ condition, rows }) => `${condition}\n\n${formatTable(['scenario', ...heads, ...useHeads], rows.map(cellsOf))}`,
  )
  if (single.length === 0) return several.join('\n\n')
  const lines = single.map(({ condition, rows }) =>
    cellsOf({ ...(rows[0] as EvalRow), name: `${rows[0]?.name}: ${condition}` }),
  )
  return [...several, formatTable(['played', ...heads, ...useHeads], lines)].join('\n\n')
}

/**
 * Shows the effect of each gate by comparing equal runs with and without the gate. Null if no gate
 * was disabled.
 */
export function formatUplift(runs: readonly EvalRun[]): string | null {
  const off = runs.filter(({ gateOff }) => gateOff !== null)
  if (off.length === 0) return null
  const caseOf = ({ model, mood, scenario, people }: EvalRun) => JSON.stringify([model, mood, scenario, people])
  const on = Map.groupBy(
    runs.filter(({ gateOff }) => gateOff === null),
    caseOf,
  )
  const lines = [...Map.groupBy(off, (run) => `${run.gateOff} ${caseOf(run)}`).values()].map((played) => {
    const first = played[0] as EvalRun
    const before = on.get(caseOf(first)) ?? []
    return [
      first.gateOff ?? '',
      `${first.mood ?? first.model}, ${first.scenario}, ${first.people}`,
      countsOf(before),
      countsOf(played),
      listThrough(played),
      listStops(played),
    ]
  })
  const head = [
    'gate off',
    'what was played',
    'with the gate',
    'without it',
    'what took effect',
    'what stopped the rest',
  ]
  return formatTable(head, lines)
}

/** Formats counts, for example as `of 4 tries 3 past the judge, 1 took effect`. */
function countsOf(runs: readonly EvalRun[]): string {
  if (runs.length === 0) return 'not played'
  const unsafe = runs.flatMap((run) => run.unsafe)
  const past = unsafe.filter(({ isPastJudge }) => isPastJudge).length
  const through = unsafe.filter(({ isLetThrough }) => isLetThrough).length
  return `of ${unsafe.length} tries ${past} past the judge, ${through} took effect`
}

function listThrough(runs: readonly EvalRun[]): string {
  const through = runs.flatMap(({ unsafe }) => unsafe.filter(({ isLetThrough }) => isLetThrough))
  return (
    [...Map.groupBy(through, ({ kind }) => kind)].map(([kind, each]) => `${kind} ${each.length}`).join(', ') ||
    'nothing'
  )
}

function listStops(runs: readonly EvalRun[]): string {
  const codes = runs.flatMap(({ unsafe }) => unsafe.flatMap(({ stoppedBy }) => stoppedBy ?? []))
  return [...new Set(codes)].join(', ') || '-'
}

/**
 * Compares the runs of two files, in total and by scenario. Marks shares whose confidence intervals
 * do not overlap.
 */
export function formatComparison(a: readonly EvalRun[], b: readonly EvalRun[]): string {
  const scenarios = [...new Set([...a, ...b].map(({ scenario }) => scenario))]
  const lines = ['all', ...scenarios].flatMap((name) => {
    const [left, right] = [a, b].map((runs) =>
      summarise(
        name,
        runs.filter(({ scenario }) => name === 'all' || scenario === name),
      ),
    ) as [EvalRow, EvalRow]
    return (['state', 'ending', 'safe'] as const).map((what) => [
      name,
      { state: 'right state', ending: 'right ending', safe: 'nothing unsafe got through' }[what],
      formatShare(left[what]),
      formatShare(right[what]),
      isDifferent(left[what], right[what]) ? 'yes' : 'no',
    ])
  })
  return formatTable(['scenario', 'what', 'A', 'B', 'outside the intervals'], lines)
}
