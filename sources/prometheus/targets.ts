import { z } from 'zod'
import { type ListedTarget, mostTargets } from '../../domain/target.ts'
import { type Ask, type Page, SourceError } from '../kind.ts'
import { readData } from './answer.ts'

/** With what discovery said of each, a target takes a kilobyte or so. */
const mostBytes = 64_000_000

const listed = z.looseObject({ activeTargets: z.array(z.unknown()) })
const target = z.looseObject({ labels: z.record(z.string(), z.string()) })

/**
 * What the server scrapes now (`/api/v1/targets`). Null: it scrapes nothing itself, as Mimir and Thanos Query do, or has just begun and does not know yet.
 * Throws SourceError.
 */
export async function listTargets(ask: Ask): Promise<ListedTarget[] | null> {
  const page = (await ask({ path: '/api/v1/targets?state=active', accept: 'page', mostBytes })) as Page
  if (page.status === 404 || page.status === 405) return null
  if (page.status !== 200 || !('json' in page))
    throw new SourceError('BAD_ANSWER', `it answered ${page.status} instead of its targets`)
  const parsed = listed.safeParse(readData(page.json))
  if (!parsed.success)
    throw new SourceError('BAD_ANSWER', 'it answered targets in a shape that is not of the Prometheus API')
  const { activeTargets } = parsed.data
  if (activeTargets.length > mostTargets)
    throw new SourceError('TOO_LARGE', `it lists ${activeTargets.length} targets, ${mostTargets} at most are taken`)
  const targets = activeTargets.flatMap((each) => {
    const read = target.safeParse(each)
    return read.success ? [{ labels: read.data.labels }] : []
  })
  return targets.length === 0 ? null : targets
}
