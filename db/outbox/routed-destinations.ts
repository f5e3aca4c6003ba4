import { destinationPrefix } from '../../domain/destination.ts'
import { endings, isRouted, mayTell } from '../../domain/route.ts'
import { databaseTime } from '../clock.ts'
import type { Trx } from '../connect.ts'
import { readAddresses } from './address-queues.ts'
import { isOfThread } from './destination-rows.ts'
import type { OutboxDestination } from './destinations.ts'

/**
 * Destinations that people configured. Each destination whose route accepts the message gets an
 * entry.
 */
export const routedDestination: OutboxDestination = {
  async entriesFor(trx, trigger, told, gone = new Set()) {
    const rows = await trx
      .selectFrom('destination')
      .select(['name', 'kind', 'route'])
      .where('enabled', '=', true)
      .orderBy('name')
      .execute()
    if (rows.length === 0) return []
    const entry = ({ name }: { name: string }) => `${destinationPrefix}${name}`
    // Returns every destination that may ever get a message with this trigger, because no message
    // is given.
    if (!told) return rows.filter((row) => mayTell(row, trigger)).map(entry)
    const addressOf = gone.size > 0 ? await readAddresses(trx) : null
    const heard = endings.includes(trigger) ? await entriesThatHeard(trx, told.incidentId) : new Set<string>()
    const at = await databaseTime(trx)
    return rows
      .filter((row) => !gone.has(addressOf?.(entry(row)) ?? ''))
      .filter((row) => isRouted(row, trigger, told, { hasHeard: heard.has(entry(row)), at }))
      .map(entry)
  },
}

async function entriesThatHeard(trx: Trx, incidentId: string): Promise<Set<string>> {
  const rows = await trx
    .selectFrom('delivery')
    .select('destination')
    .distinct()
    .where('incidentId', '=', incidentId)
    .where('destination', 'like', `${destinationPrefix}%`)
    .where(isOfThread)
    .execute()
  return new Set(rows.map(({ destination }) => destination))
}
