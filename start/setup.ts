import { Client, Connection } from '@temporalio/client'
import {
  connectionOptions,
  onceNamespaceIsKnown,
  orTrouble,
  type TemporalSettings,
} from '../clients/temporal/trouble.ts'
import { queueScheduleId } from '../domain/step-key.ts'
import {
  ensureSearchAttributes,
  keepSchedule,
  type ScheduleOptions,
  scheduleFault,
  searchAttributeFaults,
} from '../worker/schedule.ts'

/** One thing that has to be there in Temporal. `failed`: a person has to do it, and the detail says what. */
export type SetupRow = {
  what: 'namespace' | 'search attributes' | 'schedule'
  state: 'there' | 'made' | 'put right' | 'would be made' | 'would be put right' | 'failed'
  detail: string
}

type SetupOptions = { settings: TemporalSettings; schedule: ScheduleOptions; isDryRun: boolean }

/**
 * Makes in a namespace what Nightshift needs there, and leaves alone what is as it should be: a second time it changes nothing. With
 * `isDryRun` it only looks. Throws TemporalError where Temporal or the namespace is not there.
 */
export async function setUpTemporal(options: SetupOptions): Promise<SetupRow[]> {
  const { settings } = options
  const connection = await orTrouble(settings, () => Connection.connect(connectionOptions(settings)))
  try {
    const client = new Client({ connection, namespace: settings.namespace })
    return [
      { what: 'namespace', state: 'there', detail: `${settings.namespace} at ${settings.address}` },
      await onceNamespaceIsKnown(() => setUpSearchAttributes(connection, options)),
      await onceNamespaceIsKnown(() => setUpSchedule(client, options)),
    ]
  } finally {
    await connection.close()
  }
}

async function setUpSearchAttributes(connection: Connection, options: SetupOptions): Promise<SetupRow> {
  const what = 'search attributes'
  const { namespace } = options.settings
  const { missing, ofOtherType } = await searchAttributeFaults(connection, namespace)
  if (ofOtherType.length > 0) {
    return {
      what,
      state: 'failed',
      detail: `${ofOtherType.join(', ')} of another type than Keyword: no investigation could start. Remove them with "temporal operator search-attribute remove", then run this again.`,
    }
  }
  if (missing.length === 0) return { what, state: 'there', detail: 'all of type Keyword' }
  if (options.isDryRun) return { what, state: 'would be made', detail: missing.join(', ') }
  try {
    await ensureSearchAttributes(connection, namespace)
    return { what, state: 'made', detail: missing.join(', ') }
  } catch (error) {
    return { what, state: 'failed', detail: error instanceof Error ? error.message : String(error) }
  }
}

async function setUpSchedule(client: Client, { schedule, isDryRun }: SetupOptions): Promise<SetupRow> {
  const what = 'schedule'
  const detail = `${queueScheduleId}, every ${schedule.intervalSeconds} s`
  const fault = await (isDryRun ? scheduleFault : keepSchedule)(client, schedule)
  if (fault === null) return { what, state: 'there', detail }
  const isMade = fault === 'deleted'
  if (isDryRun) return { what, state: isMade ? 'would be made' : 'would be put right', detail }
  return { what, state: isMade ? 'made' : 'put right', detail }
}
