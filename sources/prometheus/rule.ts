import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import { z } from 'zod'
import { type ListedTarget, maxTargets } from '../../domain/source.ts'
import { type AskSource, type PageAnswer, quoteRemarks, SourceError } from '../kind.ts'

/** The envelope of every answer of Prometheus' HTTP API. */
const envelope = z.looseObject({ status: z.string(), data: z.unknown().optional(), error: z.string().optional() })

/** Its content. Throws SourceError where the server refused, or it is another API. */
export function readData(answer: unknown): unknown {
  const parsed = envelope.safeParse(answer)
  if (!parsed.success) throw new SourceError('BAD_ANSWER', 'it answered something that is not of the Prometheus API')
  if (parsed.data.status !== 'success')
    throw new SourceError('REJECTED', (parsed.data.error ?? 'it refused the query').slice(0, 300))
  return parsed.data.data
}

/**
 * A server's words on the answer: why it is partial, and the rest. In summaries as it is; left out
 * where empty.
 */
export type Remarks = { partial?: string[]; infos?: string[] }

const remarks = z.looseObject({
  isPartial: z.unknown().optional(),
  warnings: z.unknown().optional(),
  infos: z.unknown().optional(),
})

/**
 * Remarks beside the data: `warnings` of Prometheus, Thanos and Mimir, for a silent store or
 * left-out samples; `isPartial` of VictoriaMetrics, without a reason; `infos`, where nothing is
 * missing.
 */
export function readRemarks(answer: unknown): Remarks {
  const { isPartial, warnings, infos } = remarks.parse(answer)
  const reasons = [
    ...(isPartial === true ? ['some of its storage nodes gave no answer (isPartial)'] : []),
    ...quoteRemarks(warnings),
  ]
  const others = quoteRemarks(infos)
  return { ...(reasons.length > 0 && { partial: reasons }), ...(others.length > 0 && { infos: others }) }
}

/** With what discovery said of each, a target takes a kilobyte or so. */
const maxBytes = 64_000_000

const listed = z.looseObject({ activeTargets: z.array(z.unknown()) })
const target = z.looseObject({
  labels: z.record(z.string(), z.string()),
  health: z.string().optional().catch(undefined),
  lastScrape: z.iso.datetime({ offset: true }).optional().catch(undefined),
})

/**
 * The server's present targets (`/api/v1/targets`). Null: it scrapes nothing, as Mimir and Thanos
 * Query, or has just begun. Throws SourceError.
 */
export async function listResources(ask: AskSource): Promise<{ targets: ListedTarget[] } | null> {
  const page = (await ask({ path: '/api/v1/targets?state=active', accept: 'page', maxBytes })) as PageAnswer
  if (page.status === 404 || page.status === 405) return null
  if (page.status !== 200 || !('json' in page))
    throw new SourceError('BAD_ANSWER', `it answered ${page.status} instead of its targets`)
  const parsed = listed.safeParse(readData(page.json))
  if (!parsed.success)
    throw new SourceError('BAD_ANSWER', 'it answered targets in a shape that is not of the Prometheus API')
  const { activeTargets } = parsed.data
  if (activeTargets.length > maxTargets)
    throw new SourceError('TOO_LARGE', `it lists ${activeTargets.length} targets, ${maxTargets} at most are taken`)
  const targets = activeTargets.flatMap((each) => {
    const read = target.safeParse(each)
    if (!read.success) return []
    const { labels, health, lastScrape } = read.data
    const isKnown = (health === 'up' || health === 'down') && lastScrape !== undefined
    return [{ labels, scraped: isKnown ? { isUp: health === 'up', at: lastScrape } : null }]
  })
  return targets.length === 0 ? null : { targets }
}

/** What an alert computes: its rule, the number it is held against, and how it stands. */
type FiringRule = {
  rule: string
  expression: string
  /** The comparison at the top of the expression, as `> 0.9`; null where there is none. */
  threshold: string | null
  forSeconds: number
  /** The value of the alert as the server computed it last; null where it does not fire there. */
  value: number | null
  health: string
  /** What the server said where it could not compute the rule. */
  lastError: string | null
}

const labels = z.record(z.string(), z.string())
const answer = z.looseObject({
  groups: z.array(
    z.looseObject({
      rules: z.array(
        z.looseObject({
          type: z.string(),
          name: z.string(),
          query: z.string().default(''),
          duration: z.number().default(0),
          labels: labels.default({}),
          health: z.string().default('unknown'),
          lastError: z.string().default(''),
          alerts: z.array(z.looseObject({ labels, value: z.string().default('') })).default([]),
        }),
      ),
    }),
  ),
})

/**
 * The rule behind an alert, by name and labels (`/api/v1/rules`). Of several with the name, the one
 * with the alert, else the one whose labels the alert has. Null: this server has none of that name.
 * Throws SourceError.
 */
export async function findRule(
  ask: AskSource,
  alert: { name: string; labels: Record<string, string> },
): Promise<FiringRule | null> {
  const query = new URLSearchParams({ type: 'alert', 'rule_name[]': alert.name })
  const parsed = answer.safeParse(readData(await ask({ path: `/api/v1/rules?${query}` })))
  if (!parsed.success) return null
  const named = parsed.data.groups
    .flatMap(({ rules }) => rules)
    .filter(({ type, name }) => type === 'alerting' && name === alert.name)
  const isHeld = (own: Record<string, string>) =>
    Object.entries(own).every(([name, value]) => alert.labels[name] === value)
  const firing = named.find(({ alerts }) => alerts.some((each) => isHeld(each.labels)))
  const rule = firing ?? named.find((each) => isHeld(each.labels)) ?? named[0]
  if (!rule) return null
  const value = Number(rule.alerts.find((each) => isHeld(each.labels))?.value)
  return {
    rule: rule.name,
    expression: rule.query.slice(0, 1_000),
    threshold: findThreshold(rule.query),
    forSeconds: rule.duration,
    value: rule.alerts.length > 0 && Number.isFinite(value) ? value : null,
    health: rule.health.slice(0, 40),
    lastError: rule.lastError === '' ? null : rule.lastError.slice(0, 200),
  }
}

const comparisons: Record<string, string> = { Gtr: '>', Lss: '<', Gte: '>=', Lte: '<=', Eql: '==', Neq: '!=' }

/** The comparison with a number that decides an expression: outermost, left of `and`, `or`. */
export function findThreshold(expression: string): string | null {
  let node: SyntaxNode | null = parser.parse(expression).topNode.firstChild
  while (node && (node.name === 'ParenExpr' || node.name === 'BinaryExpr')) {
    const first: SyntaxNode | null = node.firstChild
    if (node.name === 'BinaryExpr') {
      const operator = listChildren(node)
        .map(({ name }) => comparisons[name])
        .find(Boolean)
      const [left, right] = [first, node.lastChild]
      const number = [right, left].find((side) => side?.name === 'NumberDurationLiteral' || side?.name === 'UnaryExpr')
      if (operator && number) return `${operator} ${expression.slice(number.from, number.to)}`
    }
    node = first
  }
  return null
}

function listChildren(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = []
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child)
  return children
}
