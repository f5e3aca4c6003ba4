import { eventsOf } from '../../db/log/events.ts'
import type { Capability } from '../../domain/mesh.ts'
import { knowsNames } from '../../mesh/registry.ts'
import type { DeviceProbe } from '../../mesh/specs/spec.ts'
import { type CommandContext, type CommandVerdict, judgeArgv, judgeCommand } from '../../safety/command/judge.ts'
import { fold } from '../../safety/fold.ts'
import { namesKnownOn } from '../../safety/resolved.ts'
import type { EffectDeps } from '../effect.ts'
import type { Executor } from './executor.ts'

/** The run that a call belongs to. */
type RunOfCall = { incidentId: string; attempt: number }

/**
 * Names of containers and the like under a call's command, looked up by its run on this resource.
 * Read from rows here, and sent under the control plane's signature: a device knows no such names,
 * and takes no worker's word.
 */
export async function namesVouched(
  { db }: Pick<EffectDeps, 'db'>,
  { resource, device }: Pick<Executor, 'resource' | 'device'>,
  look: DeviceProbe,
  run: RunOfCall | null,
): Promise<string[]> {
  if (run === null || !knowsNames(device.health)) return []
  if (judgeOnDevice(look)?.code !== 'UNKNOWN_NAME') return []
  const state = fold(await eventsOf(db, run.incidentId, { attempt: run.attempt }), run.attempt)
  return namesRestedOn(look, namesKnownOn(state.resolved, [resource], Date.now()))
}

/** Those of the names that the command enters; none where it does not run unasked with them. */
function namesRestedOn(look: DeviceProbe, known: ReadonlySet<string>): string[] {
  const verdict = judgeOnDevice(look, { knownNames: known })
  return verdict?.verdict === 'run' ? verdict.names : []
}

type KnownOnDevice = Pick<CommandContext, 'knownNames' | 'rootReads' | 'canLook'>

/**
 * The device's verdict, which knows no hosts and sees no containers; null for a call without a
 * command.
 */
export function judgeOnDevice({ capability, args }: DeviceProbe, known: KnownOnDevice = {}): CommandVerdict | null {
  const directory = typeof args.cwd === 'string' ? args.cwd : '/'
  const context = { knownHosts: new Set<string>(), directory, canLook: entersNothing(capability), ...known }
  if (typeof args.text === 'string' && capability === 'shell.eval') return judgeCommand(args.text, context)
  return Array.isArray(args.argv) ? judgeArgv(args.argv.map(String), context) : null
}

const entersNothing = (capability: Capability): boolean => capability !== 'docker.container.exec'
