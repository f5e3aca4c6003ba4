import { type CapabilityRequest, clockSkewSeconds, type Grant, grantSeconds } from '../../domain/mesh.ts'
import { argsDigest, isSigned } from '../sign.ts'
import type { Refused } from './door.ts'
import { keyOf, type TrustedKeys } from './manifest.ts'

/**
 * Does this grant allow exactly this request, here, now and for the first time? Null when it does. It lives two minutes from its
 * issue, whatever it claims.
 */
export function refuseGrant(
  grant: Grant,
  request: CapabilityRequest,
  at: { device: string; keys: TrustedKeys; nowMs: number; isUsed(grantId: string): boolean },
): Refused | null {
  const key = keyOf(at.keys, grant.key_id, at.nowMs)
  if (!key || !isSigned(grant, key)) return no('grant_forged', 'The grant is not signed by a key of this manifest.')
  if (grant.device !== at.device) return no('grant_wrong_device', `The grant is for ${grant.device}, not ${at.device}.`)
  if (grant.request_id !== request.request_id) return no('grant_altered', 'The grant is for another request.')
  if (grant.capability !== request.capability) return no('grant_altered', `The grant is for ${grant.capability}.`)
  if (grant.args_digest !== argsDigest(request.args)) return no('grant_altered', 'The grant is for other arguments.')
  const issuedMs = Date.parse(grant.issued_at)
  if (at.nowMs >= grantEndMs(grant)) return no('grant_expired', 'The grant has expired.')
  if (issuedMs > at.nowMs + clockSkewSeconds * 1000) return no('grant_expired', 'The grant is not valid yet.')
  if (at.isUsed(grant.id)) return no('grant_replayed', 'The grant was used before.')
  return null
}

/** From then on nobody may use it, so nobody has to remember it either. */
export function grantEndMs(grant: Grant): number {
  return Math.min(Date.parse(grant.expires_at), Date.parse(grant.issued_at) + grantSeconds * 1000)
}

function no(code: Refused['code'], message: string): Refused {
  return { ok: false, code, message }
}
