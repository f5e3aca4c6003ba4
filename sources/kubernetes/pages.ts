import type { AskCluster } from './connect.ts'
import { type Fields, fieldsOf, listOf } from './fields.ts'
import type { ClusterKind } from './kinds.ts'

type ListQuestion = { read: ClusterKind; namespace: string | null; query?: Record<string, string> }
type PageBounds = { pageSize: number; maxPages: number }

/**
 * Reads a list page by page. `toKept` makes the short form of each object; null leaves the object
 * out. `isCut`: not all pages were read.
 */
export async function readPages<T>(
  ask: AskCluster,
  { query = {}, ...question }: ListQuestion,
  { pageSize, maxPages }: PageBounds,
  toKept: (given: Fields) => T | null,
): Promise<{ items: T[]; isCut: boolean }> {
  const all: T[] = []
  let next = ''
  for (let page = 0; page < maxPages; page += 1) {
    const asked = { ...query, limit: String(pageSize), ...(next !== '' && { continue: next }) }
    const { items, metadata } = fieldsOf(await ask({ ...question, query: asked }))
    for (const each of listOf(items)) {
      const kept = toKept(each)
      if (kept !== null) all.push(kept)
    }
    const rest = fieldsOf(metadata).continue
    next = typeof rest === 'string' ? rest : ''
    if (next === '') return { items: all, isCut: false }
  }
  return { items: all, isCut: true }
}
