import { formatCount } from '../../domain/format.ts'
import { formatSize } from '../../domain/format-approval.ts'
import type { AskDatabase } from './connect.ts'

/** Limits a statement by the server's estimate before the statement runs. */

/**
 * The highest allowed cost in the planner's units, about 8 GB. Reading one page sequentially costs
 * one unit.
 */
const maxCost = 1_000_000
/** The most rows that the server estimates for any part of the plan. */
const maxRows = 10_000_000
/**
 * The most bytes that one part of the plan keeps before it returns rows, for example for sorts,
 * hashes and sums.
 */
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

/**
 * Returns the server's estimate, with the reason if the statement may not run. The judge has
 * already passed `sql`.
 */
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
  const remedy = `filter by an indexed column${largest ? ` of ${largest['Relation Name']}` : ''}, or use LIMIT in a subquery; EXPLAIN shows the plan`
  if ((Plan['Total Cost'] ?? 0) > maxCost)
    return {
      estimate,
      refusal: `the server expects a cost of ${estimate.cost.toLocaleString('en')}, over the limit of ${maxCost.toLocaleString('en')}: ${remedy}`,
    }
  if ((most['Plan Rows'] ?? 0) > maxRows)
    return {
      estimate,
      refusal: `the server expects ${formatCount(most['Plan Rows'] ?? 0, 'row')} in a ${most['Node Type']}, over the limit of ${maxRows.toLocaleString('en')}: ${remedy}`,
    }
  if (kept)
    return {
      estimate,
      refusal: `the server expects to keep ${formatSize(bytesInto(kept))} for a ${kept['Node Type']}, over the limit of ${formatSize(maxKeptBytes)}: ${remedy}`,
    }
  return { estimate, refusal: null }
}

const keeps = /^(?:Sort|Hash|Materialize|Aggregate|WindowAgg|Memoize|CTE Scan|Recursive Union)$/

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)]

const maxOf = (nodes: readonly PlanNode[]): number =>
  Math.max(0, ...nodes.filter((node) => node['Relation Name'] !== undefined).map((node) => node['Plan Rows'] ?? 0))

const bytesInto = (node: PlanNode): number =>
  Math.max(...[node, ...(node.Plans ?? [])].map((each) => (each['Plan Rows'] ?? 0) * (each['Plan Width'] ?? 0)))
