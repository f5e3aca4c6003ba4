import { eventsOf } from '../../db/log/events.ts'
import type { Capability } from '../../domain/mesh.ts'
import { knowsNames } from '../../mesh/registry.ts'
import type { DeviceProbe } from '../../mesh/specs/spec.ts'
import { type CommandContext, type CommandVerdict, judgeArgv, judgeCommand } from '../../safety/command/judge.ts'
import { fold } from '../../safety/fold.ts'
import { namesKnownOn } from '../../safety/resolved.ts'
import type { EffectDeps } from '../effect.ts'
import type { Executor } from './executor.ts'

/** The run to which a call belongs. */
type RunOfCall = { incidentId: string; attempt: number }

/**
 * Lists the names in a call's command, of containers and the like, that the call's run has looked
 * up on this resource. The names are read from rows here and sent with the control plane's
 * signature, because a device does not know them and trusts no worker.
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

/** Lists the names that the command uses; empty if the command needs approval in any case. */
function namesRestedOn(look: DeviceProbe, known: ReadonlySet<string>): string[] {
  const verdict = judgeOnDevice(look, { knownNames: known })
  return verdict?.verdict === 'run' ? verdict.names : []
}

type KnownOnDevice = Pick<CommandContext, 'knownNames' | 'rootReads' | 'canLook'>

/**
 * Returns the verdict that the device would reach. The device knows no hosts and sees no
 * containers. Null for a call without a command.
 */
export function judgeOnDevice({ capability, args }: DeviceProbe, known: KnownOnDevice = {}): CommandVerdict | null {
  const directory = typeof args.cwd === 'string' ? args.cwd : '/'
  const context = { knownHosts: new Set<string>(), directory, canLook: entersNothing(capability), ...known }
  if (typeof args.text === 'string' && capability === 'shell.eval') return judgeCommand(args.text, context)
  return Array.isArray(args.argv) ? judgeArgv(args.argv.map(String), context) : null
}

const entersNothing = (capability: Capability): boolean => capability !== 'docker.container.exec'
