import { judgePromql } from '../../safety/query/promql.ts'
import { type AskSource, SourceError } from '../kind.ts'
import { joinParts, type QueryPart, queryInstant, splitParts } from './query.ts'
import { listLeaves } from './selector.ts'

/** Whether nothing that was answered means that nothing was there. */

/** A stream seen this long before a moment is only silent. */
const recentSeconds = 3_600
const maxSelectors = 8

/**
 * The reason why an empty answer shows no absence; null where it does: where none of its selectors
 * has a sample in the window, or, at one moment, where all compared parts have a value then. Points
 * of a range are samples of the window: what held between two is not seen.
 */
export async function findDoubt(
  ask: AskSource,
  promql: string,
  { untilSeconds, windowSeconds }: { untilSeconds: number; windowSeconds: number },
): Promise<string | null> {
  const leaves = listLeaves(promql)
  const selectors = [...new Set(leaves?.flatMap((leaf) => leaf.selectors) ?? [])]
  if (leaves === null || selectors.length === 0 || selectors.length > maxSelectors)
    return 'whether its metrics are there was not asked'
  const seconds = windowSeconds === 0 ? recentSeconds : windowSeconds
  const wide = selectors.map((text, at): QueryPart => [`wide${at}`, `count(last_over_time(${text}[${seconds}s]))`])
  const now = leaves.map(({ promql: text }, at): QueryPart => [`now${at}`, `count(${text})`])
  const asked = joinParts(windowSeconds === 0 ? [...wide, ...now] : wide)
  if (wide.some(([, text]) => !judgePromql({ promql: text, windowSeconds: 0, stepSeconds: 1 }).ok))
    return `nothing stood at its points; what is between them is too much to ask`
  let found: ReturnType<typeof splitParts>
  try {
    const answer = await queryInstant(ask, asked, untilSeconds)
    if (answer.remarks.partial) return answer.remarks.partial[0] as string
    found = splitParts(answer)
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    return `whether its metrics are there could not be asked: ${error.message}`.slice(0, 160)
  }
  const seen = selectors.filter((_, at) => found.has(`wide${at}`))
  if (windowSeconds > 0)
    return seen.length === 0 ? null : `${cut(seen[0])} has samples in the window; only points of it were looked at`
  const silent = leaves.find(
    ({ selectors: own }, at) => !found.has(`now${at}`) && own.some((text) => seen.includes(text)),
  )
  return silent ? `${cut(silent.promql)} has no value at this moment, and had samples in the hour before` : null
}

const cut = (text = ''): string => (text.length <= 80 ? text : `${text.slice(0, 79)}…`)
