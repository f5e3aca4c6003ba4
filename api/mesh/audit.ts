import { HttpError } from '../../clients/http.ts'
import { callsOf, toolResultOf } from '../../db/device-calls.ts'
import type { DeviceRow } from '../../db/devices.ts'
import { DeviceLiesError, readOperation } from '../../mesh/client.ts'
import type { ApiDeps } from '../deps.ts'
import { addressOf, requireMesh } from './executor.ts'
import { askHealth } from './health.ts'

export type Audited = {
  device: string
  journal: { entries: number; head: string } | null
  calls: { key: string; requestId: string; auditHash: string }[]
  problems: string[]
}

const callsAtMost = 200

/**
 * Do the device's journal, the calls of the control plane and the rows of the incidents tell the same? For each of the newest calls the
 * device is asked what its journal has under that request: the hash must be the one it answered then, and the one on the incident.
 * The chain itself is verified where the journal is (`--journal`).
 */
export async function heldAgainst(deps: ApiDeps, device: DeviceRow): Promise<Audited> {
  const { db } = deps
  const health = await askHealth(deps, device)
  const newestFirst = await callsOf(db, device.id, { limit: callsAtMost })
  const told = newestFirst.flatMap((call) => (call.auditHash === null ? [] : [{ ...call, auditHash: call.auditHash }]))
  const problems: string[] = []
  if (!health) problems.push(`${device.id} gave no answer`)
  else if (!health.journal) problems.push(`${device.id} has no journal`)
  for (const call of newestFirst.filter(({ finishedAt }) => finishedAt === null)) {
    problems.push(`${call.key}: it is not known what became of it`)
  }
  for (const call of told) {
    const row = call.incidentId === null ? null : await toolResultOf(db, call.key)
    if (row?.auditHash && row.auditHash !== call.auditHash) {
      problems.push(`${call.key}: the row of the incident has another hash than the call`)
    }
    // What was refused is in the journal, but is no operation that could be asked for.
    if (!health || call.approvalStatus === 'refused' || call.approvalStatus === 'required') continue
    const journalled = await hashOf(deps, device, call.requestId)
    if (journalled === null) problems.push(`${call.key}: the journal of the device does not know it`)
    else if (journalled !== call.auditHash) {
      problems.push(`${call.key}: the journal of the device has another hash than the call`)
    }
  }
  return {
    device: device.id,
    journal: health?.journal ?? null,
    calls: told.reverse().map(({ key, requestId, auditHash }) => ({ key, requestId, auditHash })),
    problems,
  }
}

async function hashOf(deps: ApiDeps, device: DeviceRow, requestId: string): Promise<string | null> {
  try {
    return (await readOperation(addressOf(requireMesh(deps), device), requestId)).audit_hash
  } catch (error) {
    if (error instanceof HttpError || error instanceof DeviceLiesError) return null
    throw error
  }
}
