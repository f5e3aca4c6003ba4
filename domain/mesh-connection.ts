import { z } from 'zod'
import { deviceId } from './mesh.ts'

/**
 * The connection of an agent that connects to the API. The agent proves its identity before it gets
 * any request (docs/reference/mesh.md):
 *
 *   control plane → agent   challenge: a nonce for this connection alone, and who asks
 *   agent → control plane   hello, signed with the key that it made when it enrolled
 *   control plane → agent   welcome, with the current manifest
 *
 * Afterwards the control plane may send a newer manifest, or ask the agent to connect elsewhere.
 */

/**
 * The version of the protocol between agent and API. An incompatible change gets another number.
 */
export const connectionProtocol = 'nightshift-mesh.1'
export const connectionPath = '/mesh/connection'
/** A part of each signature, so that the signature is valid for no other purpose. */
export const connectionPurpose = 'nightshift-mesh-connection'

const nonce = z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'is not a nonce of 32 bytes')
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'is not a SHA-256')

export const connectionChallenge = z.object({
  kind: z.literal('challenge'),
  nonce,
  /** SHA-256 of the public root key, so that an agent signs only for its own control plane. */
  audience: sha256,
})

export const connectionHello = z.strictObject({
  kind: z.literal('hello'),
  purpose: z.literal(connectionPurpose),
  device: deviceId,
  nonce,
  audience: sha256,
  /**
   * The id of this start of the agent's process. A second connection with this id means that the
   * first connection was lost.
   */
  run: z.uuid(),
  version: z.string().min(1).max(100),
  key_id: z.literal('agent'),
  signature: z.string().regex(/^[A-Za-z0-9+/]{86}==$/, 'is not an ed25519 signature'),
})
export type ConnectionHello = z.infer<typeof connectionHello>

/** Messages that the control plane sends by itself. An agent ignores unknown messages. */
export const controlWord = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('welcome'), manifest: z.record(z.string(), z.unknown()).nullable() }),
  z.object({ kind: z.literal('manifest'), manifest: z.record(z.string(), z.unknown()) }),
  z.object({ kind: z.literal('move') }),
])
export type ControlWord = z.infer<typeof controlWord>

/** Codes of the frame that closes a connection. A code shows why the connection ends. */
export const closeCodes = {
  /**
   * The device is unknown, has another key, or is revoked. A caller that has not proven its
   * identity does not learn which of the three is the case.
   */
  refused: 4403,
  /** Another connection of this device replaced this connection. */
  replaced: 4409,
  /** The device made too many attempts to connect. */
  tooOften: 4429,
  /** The API process stops; the agent connects to another. */
  move: 4503,
  /** The protocol does not allow the frame. */
  violation: 4400,
} as const

/** Whether a name or address, as in a URL, is the name or address of the local machine. */
export const isThisMachine = (hostname: string): boolean => ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
