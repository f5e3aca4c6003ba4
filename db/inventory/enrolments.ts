import { sha256 } from '../../domain/digest.ts'
import { inSeconds, now } from '../clock.ts'
import type { Trx } from '../connect.ts'
import { forbidConnection } from './device-connections.ts'
import { enrolmentSeconds, newSecret } from './devices.ts'

/** Mints the one token that enrols this device, in plain, once; those minted before are void. */
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

/** Uses an enrolment token up: the device's id for exactly one caller, in time. */
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
 * Lets the device in: answers the secret for its next manifest. An older secret ends, and so does a
 * connection under another key. `agentKey`: the public key of an agent that calls out.
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
