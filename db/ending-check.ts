import type { ResolveOutcome } from '../domain/incident.ts'
import type { Trx } from './connect.ts'
import { lockIncident } from './incidents.ts'
import { alertCounts } from './lifecycle/view.ts'
import { readSettings } from './settings.ts'

/** What fires while the incident is about to be closed as if nothing did; null where nothing does. */
export async function firingAgainst(trx: Trx, id: string, outcome: ResolveOutcome): Promise<string | null> {
  if (outcome !== 'no_fault' && outcome !== 'self_resolved') return null
  const row = await lockIncident(trx, id)
  if (!row) return null
  const { firing, endless, total } = await alertCounts(trx, row, await readSettings(trx))
  if (outcome === 'self_resolved' && total === 0) return 'it has no alert that could have ended'
  const counted = outcome === 'no_fault' ? firing - endless : firing
  return counted === 0 ? null : counted === 1 ? 'its alert fires' : `${counted} of its alerts fire`
}
