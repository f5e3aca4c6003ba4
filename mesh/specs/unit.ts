import { z } from 'zod'
import type { Changed } from '../../domain/changed.ts'
import { outsideSources } from '../../domain/kinds.ts'
import { toText } from '../../domain/say.ts'
import { type RecordedUndo, stoppedAt } from '../../domain/undo.ts'
import { type DeviceArgs, defineSpec, type MeshSpec, onlyLooks, type Postcondition, same } from './spec.ts'

/** A systemd service: `nginx.service`, `getty@tty1.service`. No option and no path rides in one. */
export const unitName = z
  .string()
  .max(256)
  .regex(/^[A-Za-z0-9][A-Za-z0-9:_.@\\-]*\.service$/, 'is not the name of a service, as nginx.service')

export const serviceArgs = z.strictObject({ unit: unitName })

/** No run at all: the service is stopped. */
export const noRun = 'none'
const run = z.string().regex(/^(?:none|[0-9a-f]{32})$/, 'is not the name of a run')
/** `if_run`: the run that the service must be in, compared by the device just before it acts. */
export const serviceChangeArgs = serviceArgs.extend({ if_run: run.optional() })

/** `nginx` is `nginx.service`, as for systemctl. */
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

/** What `service.show` answers; the writes answer one before and one after. */
const serviceState = z.looseObject({
  unit: z.string(),
  active: z.string(),
  sub: z.string(),
  type: z.string(),
  result: z.string(),
  /** Another one for each time that the service is started. */
  invocation: z.string(),
  /** When it came into its state; empty where systemd has forgotten that. */
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
 * Restarted or started: it runs under the device's invocation, since systemd starts a failed one
 * under another. Stopped: it does not run. A `oneshot` that ended well did its work.
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
      // Without the answer nobody knows whether it runs because of this restart.
      if (!then.success) return verb === 'start' ? { holds: true, observed } : null
      if (invocation !== then.data.after.invocation)
        return { holds: false, observed: `${observed}, but has ended and was started again since` }
      return { holds: true, observed }
    },
  })
}

const pastOf = { restart: 'restarted', start: 'started', stop: 'stopped' } as const

/** What it changed, by the service's state before and after. */
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
 * The agent's answer to a stop: what stopped with it, which a start alone does not bring back.
 * Absent from older agents.
 */
const stopped = asBefore.extend({ taken: z.array(z.string()) })

/** The service is the one of the call: what a device answers names no other. */
function undoOfStart(input: DeviceArgs, output: DeviceArgs): RecordedUndo {
  const told = asBefore.safeParse(output)
  if (!told.success) return { none: 'the device did not say how the service stood before and after' }
  const { before, after } = told.data
  if (!isStopped(before.active)) return { none: `it was ${before.active} before, so a stop would not bring that back` }
  if (isStopped(after.active)) return { none: 'it has done its work and ended: nothing is left to stop' }
  if (after.invocation === '')
    return { none: 'systemd named no run of it, so that nobody could tell this run from another' }
  return {
    tool: 'service_stop',
    arguments: { ...nameOf(input), if_run: after.invocation },
    left: { [after.unit]: `${after.active} in run ${after.invocation}` },
  }
}

function undoOfStop(input: DeviceArgs, output: DeviceArgs): RecordedUndo {
  const told = stopped.safeParse(output)
  if (!told.success) return { none: 'the device did not say what stopped with it: its agent may be older' }
  const { before, after, taken } = told.data
  if (before.active !== 'active')
    return { none: `it was ${before.active} before, so a start would not bring that back` }
  if (taken.length > 0)
    return { none: `${taken.slice(0, 5).join(', ')} stopped with it, and its start does not bring those back` }
  return {
    tool: 'service_start',
    arguments: { ...nameOf(input), if_run: noRun },
    left: { [after.unit]: stoppedAt(after.since) },
  }
}

/**
 * A stop of that very run takes a start back, a start a stop. A restart has no way back: the run
 * before is gone.
 */
const inverses: Record<ServiceVerb, MeshSpec['undo']> = {
  restart: undefined,
  start: {
    does: (input) => `service_stop of ${nameOf(input).unit}, while it is in the run that this starts`,
    of: undoOfStart,
    ...lookAtService(),
  },
  stop: {
    does: (input) =>
      `service_start of ${nameOf(input).unit}, while nobody has started it and nothing else stopped with it`,
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
    // A node's status comes first; its relations are asked for.
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
      otherwise: 'look at the service yourself afterwards',
    },
    promise: promiseOf(verb),
    ...(inverses[verb] && { undo: inverses[verb] }),
  })

export const serviceRestart = defineWrite('restart', 'Restart a systemd service on a device.', 'medium')
const serviceStart = defineWrite('start', 'Start a systemd service on a device.', 'medium')
export const serviceStop = defineWrite('stop', 'Stop a systemd service on a device.', 'high')

export const serviceSpecs = [serviceShow, serviceRestart, serviceStart, serviceStop]

/** A word as sudoers(5) takes it: `,`, `:`, `=` and `\` are escaped. */
const escapeWord = (word: string) => word.replace(/[,:=\\]/g, '\\$&')

/** The line of sudoers(5) for exactly these commands as root, without a password. */
export function sudoersLine(user: string, ...commands: string[][]): string {
  return `${user} ALL=(root) NOPASSWD: ${commands.map((words) => words.map(escapeWord).join(' ')).join(', ')}`
}
