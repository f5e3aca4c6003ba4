import { callsOf, toolResultOf } from '../../db/device-calls.ts'
import type { DeviceRow } from '../../db/devices.ts'
import type { ApiDeps } from '../deps.ts'
import { askHealth } from './health.ts'

export type Audited = {
  device: string
  journal: { entries: number; head: string } | null
  calls: { key: string; requestId: string; auditHash: string }[]
  problems: string[]
}

const callsAtMost = 1_000

/**
 * Do the device's journal, the calls of the control plane and the rows of the incidents tell the same? Each answered call of a run has
 * the same hash on its incident, and the journal's head is that of the newest call: nobody else has written to it, and nothing was
 * cut from its end.
 */
export async function heldAgainst(deps: ApiDeps, device: DeviceRow): Promise<Audited> {
  const problems: string[] = []
  const health = await askHealth(deps, device)
  const newestFirst = await callsOf(deps.db, device.id, { limit: callsAtMost })
  const hashed = newestFirst.flatMap((call) =>
    call.auditHash === null ? [] : [{ ...call, auditHash: call.auditHash }],
  )
  for (const call of hashed) {
    if (call.incidentId === null || call.callId === null || call.rehearse) continue
    const row = await toolResultOf(deps.db, call.key)
    // Still under way, or its run was superseded before it could write the result.
    if (row === null) continue
    if (row.auditHash !== null && row.auditHash !== call.auditHash) {
      problems.push(`${call.key}: the incident's row has another hash than the call`)
    }
  }
  const unfinished = newestFirst.filter((call) => call.finishedAt === null)
  for (const call of unfinished) problems.push(`${call.key}: it is not known what became of it`)
  if (!health) problems.push(`${device.id} gave no answer`)
  else if (!health.journal) problems.push(`${device.id} has no journal`)
  else if (hashed.length > 0 && !hashed.some((call) => call.auditHash === health.journal?.head)) {
    problems.push(`the head of the journal, ${health.journal.head}, belongs to no call that was sent from here`)
  }
  return {
    device: device.id,
    journal: health?.journal ?? null,
    calls: hashed.reverse().map(({ key, requestId, auditHash }) => ({ key, requestId, auditHash })),
    problems,
  }
}
