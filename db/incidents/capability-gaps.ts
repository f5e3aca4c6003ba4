import { sql } from 'kysely'
import type { Scope } from '../scope.ts'

type CapabilityGapRow = {
  id: string
  incidentId: string
  category: 'investigation' | 'remediation' | 'notification'
  description: string
  actor: string
  at: string
}

/** Lists tools and permissions that investigations would have needed, newest first. */
export async function capabilityGaps(
  { db }: Scope,
  filter: { category?: string; incidentId?: string },
  page: { before: number | null; limit: number },
): Promise<CapabilityGapRow[]> {
  let query = db
    .selectFrom('incidentEvent')
    .select(['id', 'incidentId', 'actor', 'at'])
    .select(sql<CapabilityGapRow['category']>`metadata->>'category'`.as('category'))
    .select(sql<string>`metadata->>'description'`.as('description'))
    .where('kind', '=', 'capability_gap')
    .orderBy('id', 'desc')
    .limit(page.limit)
  if (filter.category) query = query.where(sql<boolean>`metadata->>'category' = ${filter.category}`)
  if (filter.incidentId) query = query.where('incidentId', '=', filter.incidentId)
  if (page.before !== null) query = query.where('id', '<', page.before)
  return (await query.execute()).map((row) => ({ ...row, id: String(row.id) }))
}
