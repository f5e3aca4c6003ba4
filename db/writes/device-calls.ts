import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import type { AuditedCall, DeviceCall } from '../../domain/device.ts'
import type { CapabilityAnswer } from '../../domain/mesh.ts'
import { now } from '../clock.ts'
import type { Db } from '../connect.ts'
import type { Scope } from '../scope.ts'

type CallSubject = {
  key: string
  deviceId: string
  incidentId: string | null
  callId: string | null
  capability: string
  argsDigest: string
  rehearse: boolean
  /** The approval or standing grant on which a device grant is based; null if none is needed. */
  authority: string | null
}

type OpenedCall = CallSubject & { requestId: string; grantId: string | null; begunAt: string }

const hex = () => randomBytes(12).toString('hex')

/**
 * Records a call to a device before it is sent. Chooses the request id and grant id once for each
 * key, so that a retry sends the first request again under its grant. Returns the stored row, even
 * if another process stored it.
 */
export async function openCall(db: Db, subject: CallSubject): Promise<OpenedCall> {
  await db
    .insertInto('deviceCall')
    .values({
      ...subject,
      requestId: `req_${hex()}`,
      grantId: subject.authority === null ? null : `grt_${hex()}`,
    })
    .onConflict((conflict) => conflict.column('key').doNothing())
    .execute()
  return (await callByKey(db, subject.key)) as OpenedCall
}

export async function callByKey(db: Db, key: string): Promise<OpenedCall | null> {
  const row = await db
    .selectFrom('deviceCall')
    .select(['key', 'deviceId', 'incidentId', 'callId', 'capability', 'argsDigest', 'rehearse', 'authority'])
    .select(['requestId', 'grantId', 'begunAt'])
    .where('key', '=', key)
    .executeTakeFirst()
  return row ?? null
}

/**
 * Records the response of the device, and its error code; null for a success. Only the first ending
 * of a call is kept.
 */
export async function closeCall(
  db: Db,
  key: string,
  answer: CapabilityAnswer,
  errorCode: string | null,
): Promise<void> {
  await db
    .updateTable('deviceCall')
    .set({
      finishedAt: now,
      ok: errorCode === null,
      errorCode,
      approvalStatus: answer.approval_status,
      auditHash: answer.audit_hash,
      truncated: answer.truncated,
      durationMs: answer.duration_ms,
    })
    .where('key', '=', key)
    .where('finishedAt', 'is', null)
    .execute()
}

/** The place of a call in a list. The list is sorted by the begin of calls and by their keys. */
type DeviceCallPosition = Pick<DeviceCall, 'begunAt' | 'key'>
type CallPage = { before?: DeviceCallPosition | null; limit: number }

const isBefore = ({ begunAt, key }: DeviceCallPosition) =>
  sql<boolean>`(device_call.begun_at, device_call.key) < (${begunAt}::timestamptz, ${key}::text)`

/** Lists calls to a device, newest first. */
export async function callsOf({ db }: Scope, deviceId: string, { before, limit }: CallPage): Promise<DeviceCall[]> {
  let query = db
    .selectFrom('deviceCall')
    .selectAll()
    .where('deviceId', '=', deviceId)
    .orderBy('begunAt', 'desc')
    .orderBy('key', 'desc')
    .limit(limit)
  if (before) query = query.where(isBefore(before))
  const rows = await query.execute()
  return rows.map(({ argsDigest: _, grantId: __, ...row }) => row as DeviceCall)
}

/** Lists calls to a device with the hashes of incident row and device journal, newest first. */
export async function auditedCalls(
  { db }: Scope,
  deviceId: string,
  { before, limit }: CallPage,
): Promise<AuditedCall[]> {
  let query = db
    .selectFrom('deviceCall')
    .leftJoin('incidentEvent as event', (join) =>
      join
        .on(sql<boolean>`event.step_key = replace(device_call.key, ':tool_started:', ':tool_finished:')`)
        .on('event.kind', '=', 'tool_finished'),
    )
    .select(['deviceCall.key', 'requestId', 'begunAt', 'finishedAt', 'auditHash'])
    .select(sql<string | null>`event.metadata->'result'->'data'->>'audit_hash'`.as('incidentHash'))
    .where('deviceId', '=', deviceId)
    .orderBy('begunAt', 'desc')
    .orderBy('deviceCall.key', 'desc')
    .limit(limit)
  if (before) query = query.where(isBefore(before))
  return await query.execute()
}

export type MeshKeyRow = { id: string; publicKey: string; notAfter: string | null }
