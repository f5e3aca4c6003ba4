import { formatCount } from '../../domain/format.ts'
import { formatSize } from '../../domain/format-approval.ts'
import type { AskDatabase } from './connect.ts'

/** A bound by what the server itself expects of a statement, before it runs. */

/** In the planner's units, of which a page that is read in order costs one: about 8 GB. */
const maxCost = 1_000_000
/** Rows that any part of the plan makes. */
const maxRows = 10_000_000
/** What one part of it has to keep before it answers: sorts, hashes, sums. */
const maxKeptBytes = 256_000_000

type PlanNode = {
  'Node Type': string
  'Total Cost'?: number
  'Plan Rows'?: number
  'Plan Width'?: number
  'Relation Name'?: string
  Plans?: PlanNode[]
}

export type Estimate = { cost: number; rows: number }

/** The estimate, and why the statement does not run. `sql`: a statement the judge passed. */
export async function readEstimate(
  ask: AskDatabase,
  sql: string,
): Promise<{ estimate: Estimate; refusal: string | null }> {
  const { rows } = await ask({ sql: `explain (format json) ${sql}` })
  const [{ Plan }] = JSON.parse(String(Object.values(rows[0] ?? {})[0])) as [{ Plan: PlanNode }]
  const nodes = flatten(Plan)
  const most = nodes.reduce((a, b) => ((b['Plan Rows'] ?? 0) > (a['Plan Rows'] ?? 0) ? b : a))
  const estimate = { cost: Math.round(Plan['Total Cost'] ?? 0), rows: Math.round(Plan['Plan Rows'] ?? 0) }
  const kept = nodes.find((node) => keeps.test(node['Node Type']) && bytesInto(node) > maxKeptBytes)
  const largest = nodes.find((node) => node['Relation Name'] !== undefined && node['Plan Rows'] === maxOf(nodes))
  const remedy = `narrow it by an indexed column${largest ? ` of ${largest['Relation Name']}` : ''}, or take a part with LIMIT inside; EXPLAIN shows the plan`
  if ((Plan['Total Cost'] ?? 0) > maxCost)
    return {
      estimate,
      refusal: `the server expects a cost of ${estimate.cost.toLocaleString('en')}, and ${maxCost.toLocaleString('en')} is the most: ${remedy}`,
    }
  if ((most['Plan Rows'] ?? 0) > maxRows)
    return {
      estimate,
      refusal: `the server expects ${formatCount(most['Plan Rows'] ?? 0, 'row')} in a ${most['Node Type']}, and ${maxRows.toLocaleString('en')} is the most: ${remedy}`,
    }
  if (kept)
    return {
      estimate,
      refusal: `the server expects to keep ${formatSize(bytesInto(kept))} for a ${kept['Node Type']}, and ${formatSize(maxKeptBytes)} is the most: ${remedy}`,
    }
  return { estimate, refusal: null }
}

const keeps = /^(?:Sort|Hash|Materialize|Aggregate|WindowAgg|Memoize|CTE Scan|Recursive Union)$/

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)]

const maxOf = (nodes: readonly PlanNode[]): number =>
  Math.max(0, ...nodes.filter((node) => node['Relation Name'] !== undefined).map((node) => node['Plan Rows'] ?? 0))

const bytesInto = (node: PlanNode): number =>
  Math.max(...[node, ...(node.Plans ?? [])].map((each) => (each['Plan Rows'] ?? 0) * (each['Plan Width'] ?? 0)))
