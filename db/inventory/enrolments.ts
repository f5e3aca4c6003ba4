import { sha256 } from '../../domain/digest.ts'
import { inSeconds, now } from '../clock.ts'
import type { Trx } from '../connect.ts'
import { forbidConnection } from './device-connections.ts'
import { enrolmentSeconds, newSecret } from './devices.ts'

/**
 * Creates the only valid token for the enrolment of this device, and returns it in plain text, only
 * this once. Earlier tokens become invalid.
 */
export async function mintEnrolment(
  trx: Trx,
  deviceId: string,
  by: string,
): Promise<{ token: string; expiresAt: string }> {
  await trx
    .updateTable('deviceEnrolment')
    .set({ usedAt: now })
    .where('deviceId', '=', deviceId)
    .where('usedAt', 'is', null)
    .execute()
  const token = newSecret()
  const { expiresAt } = await trx
    .insertInto('deviceEnrolment')
    .values({
      sha256: sha256(token),
      deviceId,
      createdBy: by,
      expiresAt: inSeconds(enrolmentSeconds),
    })
    .returning('expiresAt')
    .executeTakeFirstOrThrow()
  return { token, expiresAt }
}

/**
 * Uses up an enrolment token. Exactly one caller gets the id of the device, if the token has not
 * expired.
 */
export async function redeemEnrolment(trx: Trx, token: string): Promise<string | null> {
  const row = await trx
    .updateTable('deviceEnrolment')
    .set({ usedAt: now })
    .where('sha256', '=', sha256(token))
    .where('usedAt', 'is', null)
    .where('expiresAt', '>', now)
    .returning('deviceId')
    .executeTakeFirst()
  return row?.deviceId ?? null
}

/**
 * Enrols a device and returns the secret with which it gets its next manifest. An older secret
 * becomes invalid, and a connection under another key ends. `agentKey`: the public key of an agent
 * that connects to the API.
 */
export async function markEnrolled(trx: Trx, id: string, agentKey: string | null): Promise<string> {
  const refresh = newSecret()
  await trx
    .updateTable('device')
    .set({ enrolledAt: now, refreshSha256: sha256(refresh), agentKey })
    .where('id', '=', id)
    .execute()
  await forbidConnection(trx, id)
  return refresh
}
