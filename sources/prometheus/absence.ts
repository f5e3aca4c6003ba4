import { judgePromql } from '../../safety/query/promql.ts'
import { type AskSource, SourceError } from '../kind.ts'
import { joinParts, type QueryPart, queryInstant, splitParts } from './query.ts'
import { listLeaves } from './selector.ts'

/** Checks whether an empty response to a query proves absence. */

/**
 * Seconds before a moment. A metric with a sample in this time counts as interrupted, not as
 * absent.
 */
const recentSeconds = 3_600
const maxSelectors = 8

/**
 * Returns why an empty response does not prove absence. Null if absence is proved: no selector has
 * a sample in the window, or, for one moment, all compared parts have a value at this moment. For a
 * range all samples of the window are checked, because a range shows no value between its points.
 */
export async function findDoubt(
  ask: AskSource,
  promql: string,
  { untilSeconds, windowSeconds }: { untilSeconds: number; windowSeconds: number },
): Promise<string | null> {
  const leaves = listLeaves(promql)
  const selectors = [...new Set(leaves?.flatMap((leaf) => leaf.selectors) ?? [])]
  if (leaves === null || selectors.length === 0 || selectors.length > maxSelectors)
    return 'whether the metrics exist was not checked'
  const seconds = windowSeconds === 0 ? recentSeconds : windowSeconds
  const wide = selectors.map((text, at): QueryPart => [`wide${at}`, `count(last_over_time(${text}[${seconds}s]))`])
  const now = leaves.map(({ promql: text }, at): QueryPart => [`now${at}`, `count(${text})`])
  const asked = joinParts(windowSeconds === 0 ? [...wide, ...now] : wide)
  if (wide.some(([, text]) => !judgePromql({ promql: text, windowSeconds: 0, stepSeconds: 1 }).ok))
    return `the points had no value; the time between the points is too long to read`
  let found: ReturnType<typeof splitParts>
  try {
    const answer = await queryInstant(ask, asked, untilSeconds)
    if (answer.remarks.partial) return answer.remarks.partial[0] as string
    found = splitParts(answer)
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    return `the check whether the metrics exist failed: ${error.message}`.slice(0, 160)
  }
  const seen = selectors.filter((_, at) => found.has(`wide${at}`))
  if (windowSeconds > 0)
    return seen.length === 0 ? null : `${cut(seen[0])} has samples in the window, but not at the points that were read`
  const silent = leaves.find(
    ({ selectors: own }, at) => !found.has(`now${at}`) && own.some((text) => seen.includes(text)),
  )
  return silent ? `${cut(silent.promql)} has no value now, but had samples in the hour before` : null
}

const cut = (text = ''): string => (text.length <= 80 ? text : `${text.slice(0, 79)}…`)
