import { userInfo } from 'node:os'
import type { z } from 'zod'
import { noRun, serviceArgs, serviceChangeArgs, sudoersLine, type ServiceVerb as Verb } from '../../specs/unit.ts'
import { type CapabilityContext, CapabilityError, type DeviceCapability, toOutcome } from '../capability.ts'
import { isNightshift, standingOf, unitOf } from '../process-facts.ts'
import { reportOutcome, restsOnLines } from '../rehearsal-report.ts'
import {
  controlUnit,
  missingSystemd,
  type Privilege,
  privilegeOf,
  type Systemd,
  showUnits,
  systemdBy,
  type UnitState,
} from '../systemd.ts'

type Args = z.infer<typeof serviceArgs>
type ChangeArgs = z.infer<typeof serviceChangeArgs>

/** Milliseconds for which a service is watched, because it may end right after its start. */
const watchMs = 5_000
const lookEveryMs = 500

/** Describes a service in systemd's terms: `{ unit, description, active, sub, since, … }`. */
const show = (systemd: Systemd): DeviceCapability<Args> => ({
  capability: 'service.show',
  args: serviceArgs,
  missingPrerequisite: () => missingSystemd(systemd),
  weigh: () => ({ effect: 'read', reason: 'only reads', command: null }),
  run: ({ unit }, context) =>
    toOutcome(context.signal, async () => ({
      ok: true,
      result: toResult(await requireUnit(systemd, unit, context)),
      truncated: false,
    })),
})

/**
 * Restarts, starts or stops one service: `{ before, after }`. Watches a started service for five
 * seconds, and fails with systemd's message if the service ended. The dry run reports the units
 * that stop together with the service, whether the agent has the right, and the undo.
 */
const change = (systemd: Systemd, verb: Verb): DeviceCapability<ChangeArgs> => ({
  capability: `service.${verb}`,
  args: verb === 'restart' ? serviceArgs : serviceChangeArgs,
  missingPrerequisite: () => missingSystemd(systemd),
  weigh: ({ unit }) => {
    const never = whyNeverTouched(unit)
    if (never) return { effect: 'refused', reason: never, command: null }
    return { effect: 'write', reason: `${verb}s ${unit}`, command: null }
  },
  run: ({ unit, if_run: run }, context) =>
    toOutcome(context.signal, async () => {
      const found = await requireUnit(systemd, unit, context)
      requireTouchable(found)
      const taken = await listTaken(systemd, verb, found, context)
      // Reads the service once more right before the change if a run is required.
      const before = run === undefined ? found : await requireUnit(systemd, unit, context)
      requireRun(before, run)
      await controlUnit(systemd, verb, before.unit, context)
      const after = verb === 'stop' ? await requireUnit(systemd, unit, context) : await watch(systemd, before, context)
      const states = { before: toResult(before), after: toResult(after) }
      return { ok: true, result: { ...states, ...(verb === 'stop' && { taken }) }, truncated: false }
    }),
  rehearse: ({ unit, if_run: run }, context) =>
    toOutcome(context.signal, () => rehearse(systemd, { verb, unit, run }, context)),
})

type Rehearsed = { verb: Verb; unit: string; run: string | undefined }

async function rehearse(systemd: Systemd, { verb, unit, run }: Rehearsed, context: CapabilityContext) {
  const state = await requireUnit(systemd, unit, context)
  requireTouchable(state)
  requireRun(state, run)
  refuseNoUse(verb, state)
  const taken = await listTaken(systemd, verb, state, context)
  const privilege = await privilegeOf(systemd, verb, state.unit, context)
  const told = [
    `${state.unit}: ${state.description || 'no description'}`,
    `now ${describe(state)}`,
    ...(state.file ? [`defined in ${state.file}`] : []),
    taken.length === 0
      ? 'nothing else stops with the unit'
      : `${verb === 'restart' ? 'stops and starts' : 'stops'} with it: ${taken.join(', ')}`,
    describePrivilege(privilege, systemd, verb, state.unit),
    `undo: ${undo[verb](state)}`,
  ]
  const rests = restsOnLines([state.unit, state.file, standingFor(state), ...taken])
  // Reports the effect as tried, because it lists the units that systemd would stop and start.
  return reportOutcome({ told, untried: listUntried(verb, state), rests, tried: true })
}

/**
 * The most services that may stop together with one service. A larger group is too much to restart
 * at night.
 */
const maxTaken = 200

/**
 * Lists the running units that stop together with this service: units that need it or are part of
 * it, recursively. Throws if one belongs to Nightshift, or if the system depends on one.
 */
async function listTaken(
  systemd: Systemd,
  verb: Verb,
  state: UnitState,
  context: CapabilityContext,
): Promise<string[]> {
  if (verb === 'start') return []
  const taken = new Set<string>()
  const asked = new Set([state.unit])
  for (let next = [state]; next.length > 0; ) {
    const names = next.flatMap((each) =>
      [each.required_by, each.bound_by, each.parts, each.stops_too].join(' ').split(' '),
    )
    const others = [...new Set(names)].filter((name) => name !== '' && !asked.has(name))
    for (const name of others) asked.add(name)
    if (asked.size > maxTaken)
      throw new CapabilityError(
        'blocked',
        `more than ${maxTaken} units depend on ${state.unit}: it is essential for the system`,
      )
    next = (await showUnits(systemd, others, context)).filter((each) => each !== null && runs(each)) as UnitState[]
    for (const { unit } of next) {
      const never = whyNeverTouched(unit)
      if (never) throw new CapabilityError('blocked', `${unit} stops with ${state.unit}, and ${never}`)
      taken.add(unit)
    }
  }
  return [...taken].sort()
}

const runs = ({ active }: UnitState): boolean => active !== 'inactive' && active !== 'failed'

function listUntried(verb: Verb, state: UnitState): string[] {
  return [
    ...(verb === 'stop' ? [] : ['Only the start shows whether the present configuration works.']),
    ...(state.is_changed_on_disk === 'yes'
      ? ['The definition of the unit changed on disk but was not reloaded, so systemd uses the old version.']
      : []),
    ...(verb === 'stop' && state.started_by !== '' ? [`${state.started_by} may start the unit again.`] : []),
    ...(verb !== 'start' && carriesAccess.test(state.unit) ? ['Without this unit the device may be unreachable.'] : []),
  ]
}

const carriesAccess =
  /^(?:sshd?|networking|NetworkManager|systemd-networkd|systemd-resolved|firewalld|nftables|dhcpcd|wpa_supplicant|tailscaled|wg-quick@.*|openvpn.*)\.service$/

const undo: Record<Verb, (state: UnitState) => string> = {
  start: ({ unit }) => `service_stop of ${unit}`,
  stop: ({ unit }) => `service_start of ${unit}`,
  restart: () => 'none; data in the memory of the service is lost',
}

/**
 * Returns the state that an approval covers: the present run of a healthy service, or any run of an
 * unhealthy one. Otherwise a service that fails repeatedly would need a new approval each time.
 */
function standingFor({ active, restarts, invocation }: UnitState): string {
  const isSteady = active === 'active' && !(Number(restarts) > 0)
  return isSteady ? `active ${invocation}` : active === 'active' || active === 'activating' ? 'unsteady' : 'down'
}

function describe({ active, sub, since, main_pid: pid, restarts, result, exit_status: exit }: UnitState): string {
  return [
    `${active} (${sub})${since ? ` since ${since}` : ''}`,
    ...(Number(pid) > 0 ? [`main process ${pid}`] : []),
    ...(Number(restarts) > 0 ? [`started again ${restarts} times by systemd`] : []),
    ...(active === 'failed' ? [`ended with ${result}${Number(exit) > 0 ? `, exit status ${exit}` : ''}`] : []),
  ].join(', ')
}

function describePrivilege(privilege: Privilege, { words }: Systemd, verb: Verb, unit: string): string {
  if (privilege === 'own') return "with the agent's own service manager"
  if (privilege === 'root') return 'the agent is root'
  if (privilege === 'sudo') return 'sudoers allows the agent exactly this'
  const line = sudoersLine(userInfo().username, [...words, verb, unit])
  return `MISSING PRIVILEGE: no rule was found that lets the agent do this; sudoers needs the line: ${line}`
}

async function requireUnit(systemd: Systemd, unit: string, context: CapabilityContext): Promise<UnitState> {
  const [state] = await showUnits(systemd, [unit], context)
  if (state) return state
  throw new CapabilityError(
    'not_found',
    `This device has no service ${unit}. "systemctl list-units --type=service" lists the services.`,
  )
}

/** Checks the service under its real name, because the requested name may be an alias. */
function requireTouchable({ unit, load, file }: UnitState): void {
  const never = whyNeverTouched(unit)
  if (never) throw new CapabilityError('blocked', never)
  if (load === 'masked') throw new CapabilityError('conflict', `${unit} is masked: an administrator forbids its start`)
  if (load !== 'loaded')
    throw new CapabilityError('conflict', `systemd could not load ${unit} (${load})${file && `: ${file}`}`)
}

/**
 * Refuses a call that requires another run of the service, because the service was started or
 * stopped meanwhile.
 */
function requireRun({ unit, active, invocation }: UnitState, run: string | undefined): void {
  const now = active === 'inactive' || active === 'failed' ? noRun : invocation
  if (run === undefined || run === now) return
  const words = (name: string) => (name === noRun ? 'stopped' : `in run ${name}`)
  throw new CapabilityError('conflict', `${unit} is ${words(now)}, but ${words(run)} was expected: nothing was done`)
}

/** Refuses a call that would change nothing. */
function refuseNoUse(verb: Verb, { unit, active, type }: UnitState): void {
  if (verb === 'start' && active === 'active' && type !== 'oneshot')
    throw new CapabilityError('conflict', `${unit} already runs; if it does not answer, service_restart may help`)
  if (verb === 'stop' && active === 'inactive') throw new CapabilityError('conflict', `${unit} is already stopped`)
}

const ofTheSystem = /^(?:dbus(?:-broker)?|systemd-(?:journald|logind|udevd)|user@.*|init)\.service$/
/** Services whose start does not start a service: it powers off, suspends, formats. */
const endsTheSystem =
  /^(?:systemd-(?:poweroff|reboot|soft-reboot|halt|kexec|exit|suspend|hibernate|hybrid-sleep|suspend-then-hibernate)|rescue|emergency|initrd-.*)\.service$/
const changesDisks =
  /^systemd-(?:makefs@.*|mkswap@.*|growfs@.*|growfs-root|repart|volatile-root|cryptsetup@.*|factory-reset.*)\.service$/

function whyNeverTouched(unit: string): string | null {
  if (endsTheSystem.test(unit)) return `${unit} ends or suspends the whole system`
  if (changesDisks.test(unit)) return `${unit} changes disks`
  if (unit === 'debug-shell.service') return `${unit} opens a root shell without a password`
  if (isNightshift({ words: [], cgroups: [`0::/system.slice/${unit}`] })) return `${unit} is Nightshift itself`
  if (unitOf(standingOf(process.pid)?.cgroups ?? []) === unit) return `the agent runs in ${unit}`
  return ofTheSystem.test(unit) ? `the system and every signed-in user depend on ${unit}` : null
}

/** Watches a service. Throws as soon as the service is neither active nor, as a oneshot, done. */
async function watch(systemd: Systemd, { unit }: UnitState, context: CapabilityContext): Promise<UnitState> {
  const until = performance.now() + watchMs
  let first: UnitState | null = null
  for (;;) {
    const now = await requireUnit(systemd, unit, context)
    first ??= now
    const isDone = now.type === 'oneshot' && now.active === 'inactive' && now.result === 'success'
    if (isDone) return now
    if (now.active !== 'active' || now.invocation !== first.invocation)
      throw new CapabilityError('failed', `${unit} did not stay up: ${describe(now)}`)
    if (performance.now() >= until) return now
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
    context.signal.throwIfAborted()
  }
}

/** Builds the result: converts numbers, and drops fields that systemd left empty. */
function toResult({ required_by, bound_by, parts, stops_too, ...state }: UnitState): Record<string, unknown> {
  const entries = Object.entries(state).flatMap(([name, value]): [string, unknown][] => {
    if (value === '' || value === '[not set]') return []
    const isNumber = ['exit_status', 'main_pid', 'restarts', 'memory_bytes', 'tasks'].includes(name)
    return [[name, isNumber && /^\d{1,15}$/.test(value) ? Number(value) : value]]
  })
  return { result: '', type: '', invocation: '', ...Object.fromEntries(entries) }
}

/** Returns the four capabilities of this machine's service manager. */
export function servicesBy(systemctl: readonly string[] | undefined): DeviceCapability<Args>[] {
  const systemd = systemdBy(systemctl)
  return [show(systemd), change(systemd, 'restart'), change(systemd, 'start'), change(systemd, 'stop')]
}
