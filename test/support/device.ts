import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { afterAll } from '@jest/globals'
import { type Manifest, manifest as manifestSchema } from '../../domain/mesh.ts'
import type { CapabilityContext, CapabilityOutcome, DeviceCapability } from '../../mesh/agent/capability.ts'
import { findConfinement } from '../../mesh/agent/confine.ts'
import { runProgram } from '../../mesh/agent/run.ts'
import { signed, writePublicKey } from '../../mesh/sign.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')

/** A manifest as the control plane would sign it, with what a test wants different. */
export function manifestOf(changes: Partial<Manifest>): Manifest {
  return manifestSchema.parse(
    signed(
      {
        id: 'm1',
        device: 'web1',
        mode: 'user',
        capabilities: [],
        roots: [],
        issued_at: '2026-11-21T00:00:00Z',
        expires_at: '2027-11-21T00:00:00Z',
        keys: [{ id: 'k1', public_key: writePublicKey(publicKey), not_after: null }],
        ...changes,
      },
      { id: 'k1', key: privateKey },
    ),
  )
}

/** `env`: what the machine has and programs find there, such as an authority that it trusts. */
export type Device = { manifest: Manifest; state: string; lines: string[]; env?: Record<string, string> }

export const deviceOf = (state: string, changes: Partial<Manifest>): Device => ({
  manifest: manifestOf(changes),
  state,
  lines: [],
})

const confinement = findConfinement()
afterAll(async () => (await confinement).close())

/**
 * What the agent hands to a capability: programs really run, and reads are confined as this machine
 * allows.
 */
export function contextOf(device: Device, signal: AbortSignal = new AbortController().signal): CapabilityContext {
  const { manifest, state } = device
  return {
    manifest,
    state,
    hidden: [],
    names: [],
    signal,
    isGranted: false,
    whyUnmet: async () => null,
    emit: (line) => device.lines.push(line),
    run: async (argv, options) => {
      const marker = `req_${randomBytes(12).toString('hex')}`
      return runProgram(
        argv,
        { ...options, env: { ...options.env, ...device.env } },
        { limits: manifest.limits, confinement: await confinement, marker, signal },
      )
    },
  }
}

/** As the guard does it: the arguments are parsed, weighed, and what is not refused is run. */
export async function ask<Args>(
  device: Device,
  capability: DeviceCapability<Args>,
  given: Record<string, unknown>,
  options: { rehearse?: boolean; signal?: AbortSignal } = {},
): Promise<CapabilityOutcome> {
  const args = capability.args.parse(given)
  const weight = capability.weigh(args, device.manifest)
  if (weight.effect === 'refused')
    return { ok: false, code: weight.code ?? 'blocked', message: weight.reason, result: null, truncated: false }
  const context = contextOf(device, options.signal)
  return options.rehearse ? capability.rehearse!(args, context) : capability.run(args, context)
}

/** The result of what must have worked. */
export async function done<Args>(...given: Parameters<typeof ask<Args>>): Promise<Record<string, unknown>> {
  const outcome = await ask(...given)
  if (!outcome.ok) throw new Error(`${outcome.code}: ${outcome.message}`)
  return outcome.result
}

/** Code and message of what must have been refused or have failed. */
export async function fault<Args>(...given: Parameters<typeof ask<Args>>): Promise<{ code: string; message: string }> {
  const outcome = await ask(...given)
  if (outcome.ok) throw new Error(`was done: ${JSON.stringify(outcome.result)}`)
  return { code: outcome.code, message: outcome.message }
}
