import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { type Manifest, manifest as manifestSchema } from '../../../domain/mesh.ts'
import type { CapabilityContext, DeviceCapability, Outcome, RunResult } from '../../../mesh/agent/capability.ts'
import { signed, writePublicKey } from '../../../mesh/sign.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')

/** A manifest as the control plane would sign it, with what a test wants different. */
export function manifestOf(changes: Partial<Manifest>): Manifest {
  return manifestSchema.parse(
    signed(
      {
        ...{ id: 'm1', device: 'web1', mode: 'user', capabilities: [], roots: [] },
        ...{ issued_at: '2026-11-21T00:00:00Z', expires_at: '2027-11-21T00:00:00Z' },
        keys: [{ id: 'k1', public_key: writePublicKey(publicKey), not_after: null }],
        ...changes,
      },
      { id: 'k1', key: privateKey },
    ),
  )
}

export type Device = { manifest: Manifest; state: string; lines: string[]; ran: string[][] }

export const deviceOf = (state: string, changes: Partial<Manifest>): Device => ({
  manifest: manifestOf(changes),
  state,
  lines: [],
  ran: [],
})

/** Where a program's confinement is not the question: it is really started, in a group of its own, with nothing of our environment. */
export function contextOf(device: Device, signal: AbortSignal = new AbortController().signal): CapabilityContext {
  return {
    manifest: device.manifest,
    state: device.state,
    signal,
    emit: (line) => device.lines.push(line),
    run: (argv, { cwd, env, input, onLine }) => {
      device.ran.push([...argv])
      return new Promise<RunResult>((resolve, reject) => {
        const child = spawn(argv[0]!, argv.slice(1), {
          cwd: cwd ?? '/',
          env: { PATH: process.env.PATH!, LANG: 'C.UTF-8', ...env },
          detached: true,
          stdio: ['pipe', 'pipe', 'pipe'],
        })
        const kill = () => process.kill(-child.pid!, 'SIGKILL')
        signal.addEventListener('abort', kill, { once: true })
        const output = { stdout: '', stderr: '' }
        for (const stream of ['stdout', 'stderr'] as const) {
          let rest = ''
          child[stream].setEncoding('utf8').on('data', (text: string) => {
            output[stream] += text
            const lines = (rest + text).split('\n')
            rest = lines.pop()!
            for (const line of lines) onLine?.(line)
          })
        }
        child.on('error', reject)
        child.on('close', (exitCode, by) => {
          signal.removeEventListener('abort', kill)
          const stoppedBy = signal.aborted ? 'cancelled' : null
          resolve({ exitCode, signal: by, ...output, truncated: false, stoppedBy })
        })
        // Who does not read its input must not end us.
        child.stdin.on('error', () => {})
        child.stdin.end(input ?? '')
      })
    },
  }
}

/** As the guard does it: the arguments are parsed, weighed, and what is not refused is run. */
export async function ask<Args>(
  device: Device,
  capability: DeviceCapability<Args>,
  given: Record<string, unknown>,
  options: { rehearse?: boolean; signal?: AbortSignal } = {},
): Promise<Outcome> {
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
