import { z } from 'zod'
import { deviceId } from './mesh.ts'

/**
 * An agent that calls out proves itself before anything is asked over its connection
 * (docs/reference/mesh.md):
 *
 *   control plane → agent   challenge: a nonce for this connection alone, and who asks
 *   agent → control plane   hello, signed with the key that it made when it enrolled
 *   control plane → agent   welcome, with the manifest as it is now
 *
 * Afterwards the control plane may send a newer manifest, or the word to connect elsewhere.
 */

/** The protocol that both sides name. A change that older ones cannot read gets another number. */
export const connectionProtocol = 'nightshift-mesh.1'
export const connectionPath = '/mesh/connection'
/** What the key signs for, so that no signature of it is good for anything else. */
export const connectionPurpose = 'nightshift-mesh-connection'

const nonce = z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'is not a nonce of 32 bytes')
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'is not a SHA-256')

export const connectionChallenge = z.object({
  kind: z.literal('challenge'),
  nonce,
  /** SHA-256 of the public root key: an agent signs for the control plane of its enrolment only. */
  audience: sha256,
})

export const connectionHello = z.strictObject({
  kind: z.literal('hello'),
  purpose: z.literal(connectionPurpose),
  device: deviceId,
  nonce,
  audience: sha256,
  /** Names this run of the agent: a second connection of one run follows a lost first. */
  run: z.uuid(),
  version: z.string().min(1).max(100),
  key_id: z.literal('agent'),
  signature: z.string().regex(/^[A-Za-z0-9+/]{86}==$/, 'is not an ed25519 signature'),
})
export type ConnectionHello = z.infer<typeof connectionHello>

/** What the control plane says by itself. An agent passes over words that it does not know. */
export const controlWord = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('welcome'), manifest: z.record(z.string(), z.unknown()).nullable() }),
  z.object({ kind: z.literal('manifest'), manifest: z.record(z.string(), z.unknown()) }),
  z.object({ kind: z.literal('move') }),
])
export type ControlWord = z.infer<typeof controlWord>

/** Why a connection is ended, by the code of its last frame. */
export const closeCodes = {
  /** Unknown device, other key, revoked: which one is not said to who cannot prove anything. */
  refused: 4403,
  /** Another connection of this device took its place. */
  replaced: 4409,
  /** Not now: too many tries of this device. */
  tooOften: 4429,
  /** This process ends. */
  move: 4503,
  /** What came is not of the protocol. */
  violation: 4400,
} as const

/** Whether a name or address, as URLs write it, is this machine's own. */
export const isThisMachine = (hostname: string): boolean => ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
