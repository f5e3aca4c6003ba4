import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import { quoteText } from '../logs/logs.ts'

/** Parts of an expression, which decide what an empty result of the expression can prove. */

/** An expression that is only a selector with one metric. */
export type Plain = { text: string; name: string }

export function findPlain(promql: string): Plain | null {
  const node = withoutParentheses(firstOf(parser.parse(promql).topNode))
  if (node?.name !== 'VectorSelector') return null
  const text = promql.slice(node.from, node.to)
  const metric = node.getChild('Identifier')
  if (metric) return { text, name: promql.slice(metric.from, metric.to) }
  const [, name] = /[{,]\s*__name__\s*=\s*["'`]([^"'`\\]+)["'`]\s*[,}]/.exec(text) ?? []
  return name === undefined ? null : { text, name }
}

/** Builds the selector of exactly one series. */
export function toSelector({ __name__: name = '', ...labels }: Record<string, string>): string {
  const matchers = [['__name__', name] as const, ...Object.entries(labels)].map(
    ([label, value]) => `${label}=${quoteText(value)}`,
  )
  return `{${matchers.join(',')}}`
}

/**
 * A part of an expression that drops no values, because nothing in it compares or filters them. If
 * its `selectors` have samples, its result cannot be empty.
 */
type Leaf = { promql: string; selectors: string[] }

/** Lists the largest such parts. Null if the expression reads other times than its query. */
export function listLeaves(promql: string): Leaf[] | null {
  const { topNode } = parser.parse(promql)
  if (holds(topNode, /^(?:OffsetExpr|StepInvariantExpr|SubqueryExpr)$/)) return null
  const leavesOf = (node: SyntaxNode): Leaf[] => {
    if (takesAway(node)) return childrenOf(node).flatMap(leavesOf)
    const selectors = selectorsOf(node).map(({ from, to }) => promql.slice(from, to))
    return selectors.length > 0 ? [{ promql: promql.slice(node.from, node.to), selectors }] : []
  }
  return leavesOf(topNode)
}

const comparison = /^(?:Eql|Neq|Gtr|Lss|Gte|Lte|And|Or|Unless)$/

/**
 * Whether a node may drop values. Also true for the parent of such a node, for example a sum of
 * values over a limit. The parent's other children are not expressions and have no selector.
 */
const takesAway = (node: SyntaxNode): boolean =>
  node.name === 'PromQL' || holds(node, comparison) || (node.name === 'FunctionCall' && holds(node, /^Absent/))

function holds(node: SyntaxNode, names: RegExp): boolean {
  return childrenOf(node).some((child) => names.test(child.name) || holds(child, names))
}

const selectorsOf = (node: SyntaxNode): SyntaxNode[] =>
  node.name === 'VectorSelector' ? [node] : childrenOf(node).flatMap(selectorsOf)

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = []
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child)
  return children
}

const firstOf = (node: SyntaxNode): SyntaxNode | null =>
  childrenOf(node).find(({ name }) => name !== 'LineComment') ?? null

function withoutParentheses(node: SyntaxNode | null): SyntaxNode | null {
  return node?.name === 'ParenExpr' ? withoutParentheses(firstOf(node)) : node
}
