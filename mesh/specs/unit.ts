import { z } from 'zod'
import type { Changed } from '../../domain/changed.ts'
import { outsideSources } from '../../domain/kinds.ts'
import { toText } from '../../domain/say.ts'
import { type RecordedUndo, stoppedAt } from '../../domain/undo.ts'
import { type DeviceArgs, defineSpec, type MeshSpec, onlyLooks, type Postcondition, same } from './spec.ts'

/**
 * A systemd service such as `nginx.service` or `getty@tty1.service`. The pattern excludes options
 * and paths.
 */
export const unitName = z
  .string()
  .max(256)
  .regex(/^[A-Za-z0-9][A-Za-z0-9:_.@\\-]*\.service$/, 'is not the name of a service, as nginx.service')

export const serviceArgs = z.strictObject({ unit: unitName })

/** The id that stands for the run of a stopped service. */
export const noRun = 'none'
const run = z.string().regex(/^(?:none|[0-9a-f]{32})$/, 'is not the name of a run')
/** `if_run` is the run that the service must have. The device compares it before the change. */
export const serviceChangeArgs = serviceArgs.extend({ if_run: run.optional() })

/** A service, with or without its ending: `nginx` means `nginx.service`, as for systemctl. */
const unit = z
  .string()
  .max(256)
  .regex(/^[A-Za-z0-9][A-Za-z0-9:_.@\\-]*$/, 'is not the name of a service')
  .meta({ description: 'as nginx.service', examples: ['nginx.service'] })

const withSuffix = ({ unit: name, ...more }: DeviceArgs): DeviceArgs => ({
  ...more,
  unit: String(name).endsWith('.service') ? name : `${name}.service`,
})
const nameOf = (input: DeviceArgs): DeviceArgs => ({ unit: withSuffix(input).unit })

/** The state of a service. A write returns two: from before and from after. */
const serviceState = z.looseObject({
  unit: z.string(),
  active: z.string(),
  sub: z.string(),
  type: z.string(),
  result: z.string(),
  /** The id of the service's run. Each start of the service gets another id. */
  invocation: z.string(),
  /** The time since which the service has its state. Empty if systemd does not know the time. */
  since: z.string().default(''),
})
const written = z.looseObject({ after: serviceState })
const asBefore = written.extend({ before: serviceState })

const serviceShow = defineSpec({
  name: 'service_status',
  firstFor: outsideSources,
  isSituational: true,
  capability: 'service.show',
  about: 'State of a systemd service on a device: active, since when, exit status, restarts, process, memory.',
  args: serviceArgs,
  input: () => z.strictObject({ unit }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  proof: onlyLooks,
  toArgs: withSuffix,
  toOutput: same,
  summary: ({ unit: name }) => `State of ${name}`,
  say: ({ active, sub, result, restarts }, { unit: name }) =>
    `${name} is ${toText(active)} (${toText(sub)})${result !== 'success' && toText(result) ? `, ended with ${toText(result)}` : ''}${Number(restarts) > 0 ? `, ${toText(restarts)} restarts` : ''}`,
})

export const serviceVerbs = ['restart', 'start', 'stop'] as const
export type ServiceVerb = (typeof serviceVerbs)[number]

/**
 * Builds the postcondition. After a restart or start, the service must run under the invocation
 * that the device reported, because systemd restarts a failed service under another invocation.
 * After a stop, the service must not run. A `oneshot` that ended with success counts as running.
 */
function promiseOf(verb: ServiceVerb): (input: DeviceArgs) => Postcondition {
  return (input) => ({
    look: () => ({ capability: 'service.show', args: nameOf(input) }),
    holds({ result: seen }, result) {
      const now = serviceState.safeParse(seen)
      if (!now.success) return null
      const { unit: name, active, sub, result: ended, type, invocation } = now.data
      const observed = `${name} is ${active} (${sub})`
      if (verb === 'stop') return { holds: active === 'inactive' || active === 'failed', observed }
      const isDone = type === 'oneshot' && active === 'inactive' && ended === 'success'
      if (active !== 'active' && !isDone) return { holds: false, observed }
      const then = written.safeParse(result)
      // Cannot tell without the response whether the service still has its former run.
      if (!then.success) return verb === 'start' ? { holds: true, observed } : null
      if (invocation !== then.data.after.invocation)
        return { holds: false, observed: `${observed}, but has ended and was started again since` }
      return { holds: true, observed }
    },
  })
}

const pastOf = { restart: 'restarted', start: 'started', stop: 'stopped' } as const

/** Returns the changes by the service's state before and after. */
const changesOf =
  (verb: ServiceVerb) =>
  (result: DeviceArgs): Changed => {
    const told = asBefore.safeParse(result)
    if (!told.success) return null
    const { before, after } = told.data
    const isSame = before.invocation === after.invocation && before.active === after.active
    return isSame ? [] : [`${after.unit} was ${pastOf[verb]}`]
  }

const isStopped = (active: string): boolean => active === 'inactive' || active === 'failed'

/**
 * The agent's response to a stop. `taken`: units that stopped with the service, which a start of
 * the service does not start again. Older agents do not report it.
 */
const stopped = asBefore.extend({ taken: z.array(z.string()) })

/** Uses the service of the call, because a device's response must not name another service. */
function undoOfStart(input: DeviceArgs, output: DeviceArgs): RecordedUndo {
  const told = asBefore.safeParse(output)
  if (!told.success) return { none: 'the device did not report the state of the service before and after' }
  const { before, after } = told.data
  if (!isStopped(before.active))
    return { none: `the service was ${before.active} before, so a stop would not restore that state` }
  if (isStopped(after.active)) return { none: 'the service has done its work and ended, so there is nothing to stop' }
  if (after.invocation === '')
    return { none: 'systemd named no run of the service, so this run cannot be distinguished from another run' }
  return {
    tool: 'service_stop',
    arguments: { ...nameOf(input), if_run: after.invocation },
    left: { [after.unit]: `${after.active} in run ${after.invocation}` },
  }
}

function undoOfStop(input: DeviceArgs, output: DeviceArgs): RecordedUndo {
  const told = stopped.safeParse(output)
  if (!told.success) return { none: 'the device did not report what stopped with the service: its agent may be older' }
  const { before, after, taken } = told.data
  if (before.active !== 'active')
    return { none: `the service was ${before.active} before, so a start would not restore that state` }
  if (taken.length > 0)
    return {
      none: `${taken.slice(0, 5).join(', ')} stopped with the service, and a start of the service does not start them again`,
    }
  return {
    tool: 'service_start',
    arguments: { ...nameOf(input), if_run: noRun },
    left: { [after.unit]: stoppedAt(after.since) },
  }
}

/**
 * The undo of each verb. A stop of exactly this run undoes a start, and a start undoes a stop. A
 * restart has no undo, because the earlier run is gone.
 */
const inverses: Record<ServiceVerb, MeshSpec['undo']> = {
  restart: undefined,
  start: {
    does: (input) => `service_stop of ${nameOf(input).unit}, while it is still in the run that this call starts`,
    of: undoOfStart,
    ...lookAtService(),
  },
  stop: {
    does: (input) =>
      `service_start of ${nameOf(input).unit}, if nobody has started it since and no other unit stopped with it`,
    of: undoOfStop,
    ...lookAtService(),
  },
}

function lookAtService(): Pick<NonNullable<MeshSpec['undo']>, 'look' | 'facts'> {
  return {
    look: (input) => ({ capability: 'service.show', args: nameOf(input) }),
    facts(seen) {
      const now = serviceState.safeParse(seen)
      if (!now.success) return null
      const { unit: name, active, invocation, since } = now.data
      return { [name]: isStopped(active) ? stoppedAt(since) : `${active} in run ${invocation}` }
    },
  }
}

const defineWrite = (verb: ServiceVerb, about: string, risk: 'medium' | 'high') =>
  defineSpec({
    name: `service_${verb}`,
    // A node's status comes first; the relations of a node are read on request.
    firstFor: verb === 'restart' ? ['service_unit', 'container', 'workload', 'device', 'target'] : [],
    capability: `service.${verb}`,
    about,
    args: verb === 'restart' ? serviceArgs : serviceChangeArgs,
    input: () =>
      verb === 'restart'
        ? z.strictObject({ unit })
        : z.strictObject({ unit, if_run: run.optional().describe('invocation that it must be in; none: stopped') }),
    effect: 'write',
    risk,
    reversible: verb !== 'restart',
    asked: true,
    rehearses: true,
    toArgs: withSuffix,
    toOutput: same,
    summary: (input: DeviceArgs) => `${verb[0]?.toUpperCase()}${verb.slice(1)} ${withSuffix(input).unit}`,
    changes: changesOf(verb),
    proof: {
      promised: verb === 'stop' ? 'the service does not run' : 'the service runs, and stays up',
      otherwise: 'check the service yourself afterwards',
    },
    promise: promiseOf(verb),
    ...(inverses[verb] && { undo: inverses[verb] }),
  })

export const serviceRestart = defineWrite('restart', 'Restart a systemd service on a device.', 'medium')
const serviceStart = defineWrite('start', 'Start a systemd service on a device.', 'medium')
export const serviceStop = defineWrite('stop', 'Stop a systemd service on a device.', 'high')

export const serviceSpecs = [serviceShow, serviceRestart, serviceStart, serviceStop]

/** Escapes a word for sudoers(5): `,`, `:`, `=` and `\`. */
const escapeWord = (word: string) => word.replace(/[,:=\\]/g, '\\$&')

/** Builds the line of sudoers(5) for exactly these commands as root, without a password. */
export function sudoersLine(user: string, ...commands: string[][]): string {
  return `${user} ALL=(root) NOPASSWD: ${commands.map((words) => words.map(escapeWord).join(' ')).join(', ')}`
}
