import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import { z } from 'zod'
import { type ListedTarget, maxTargets } from '../../domain/source.ts'
import { type AskSource, type PageAnswer, quoteRemarks, SourceError } from '../kind.ts'

/** The envelope of every response of Prometheus' HTTP API. */
const envelope = z.looseObject({ status: z.string(), data: z.unknown().optional(), error: z.string().optional() })

/**
 * Returns the data of the envelope. Throws SourceError if the server refused, or the response is of
 * another API.
 */
export function readData(answer: unknown): unknown {
  const parsed = envelope.safeParse(answer)
  if (!parsed.success) throw new SourceError('BAD_ANSWER', 'the response does not fit the Prometheus API')
  if (parsed.data.status !== 'success')
    throw new SourceError('REJECTED', (parsed.data.error ?? 'the source refused the query').slice(0, 300))
  return parsed.data.data
}

/**
 * Remarks of a server on a response: reasons why it is partial, and other remarks. Summaries
 * contain the remarks unchanged. A field is absent if empty.
 */
export type Remarks = { partial?: string[]; infos?: string[] }

const remarks = z.looseObject({
  isPartial: z.unknown().optional(),
  warnings: z.unknown().optional(),
  infos: z.unknown().optional(),
})

/**
 * Reads the remarks of a response. `warnings` of Prometheus, Thanos and Mimir: a store did not
 * respond or omitted samples. `isPartial` of VictoriaMetrics: the response is partial, without a
 * reason. `infos`: nothing is missing.
 */
export function readRemarks(answer: unknown): Remarks {
  const { isPartial, warnings, infos } = remarks.parse(answer)
  const reasons = [
    ...(isPartial === true ? ['some of its storage nodes did not answer (isPartial)'] : []),
    ...quoteRemarks(warnings),
  ]
  const others = quoteRemarks(infos)
  return { ...(reasons.length > 0 && { partial: reasons }), ...(others.length > 0 && { infos: others }) }
}

/** The most bytes of a list of targets. A target with its labels takes about a kilobyte. */
const maxBytes = 64_000_000

const listed = z.looseObject({ activeTargets: z.array(z.unknown()) })
const target = z.looseObject({
  labels: z.record(z.string(), z.string()),
  health: z.string().optional().catch(undefined),
  lastScrape: z.iso.datetime({ offset: true }).optional().catch(undefined),
})

/**
 * Lists the server's present scrape targets (`/api/v1/targets`). Null if the server scrapes
 * nothing, as Mimir and Thanos Query, or has just started. Throws SourceError.
 */
export async function listResources(ask: AskSource): Promise<{ targets: ListedTarget[] } | null> {
  const page = (await ask({ path: '/api/v1/targets?state=active', accept: 'page', maxBytes })) as PageAnswer
  if (page.status === 404 || page.status === 405) return null
  if (page.status !== 200 || !('json' in page))
    throw new SourceError('BAD_ANSWER', `the source answered ${page.status} instead of the list of targets`)
  const parsed = listed.safeParse(readData(page.json))
  if (!parsed.success) throw new SourceError('BAD_ANSWER', 'the targets do not fit the Prometheus API')
  const { activeTargets } = parsed.data
  if (activeTargets.length > maxTargets)
    throw new SourceError(
      'TOO_LARGE',
      `the source lists ${activeTargets.length} targets, and at most ${maxTargets} are accepted`,
    )
  const targets = activeTargets.flatMap((each) => {
    const read = target.safeParse(each)
    if (!read.success) return []
    const { labels, health, lastScrape } = read.data
    const isKnown = (health === 'up' || health === 'down') && lastScrape !== undefined
    return [{ labels, scraped: isKnown ? { isUp: health === 'up', at: lastScrape } : null }]
  })
  return targets.length === 0 ? null : { targets }
}

/** The rule of an alert, with its threshold and its state. */
type FiringRule = {
  rule: string
  expression: string
  /** The comparison at the top of the expression, such as `> 0.9`. Null without a comparison. */
  threshold: string | null
  forSeconds: number
  /** The last computed value of the alert. Null if the alert does not fire on this server. */
  value: number | null
  health: string
  /** The server's error if it could not compute the rule. */
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
 * Finds the rule of an alert by name and labels (`/api/v1/rules`). Prefers a rule that has the
 * alert, then a rule whose labels the alert has. Null if this server has no rule with the name.
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

/** Returns the comparison with a number that decides: the outermost, left of `and` and `or`. */
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
