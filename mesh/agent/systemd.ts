import { stat } from 'node:fs/promises'
import { stripText } from '../../safety/redact.ts'
import { type CapabilityContext, CapabilityError, type RunResult } from './capability.ts'
import { find, isRoot, whyNotDone } from './programs.ts'

/**
 * The program and arguments that call this machine's service manager, before the verb. `isUsers`:
 * the manager of the agent's user.
 */
export type Systemd = { words: readonly string[]; isUsers: boolean }

/** Builds the call from `systemctl` with its usual arguments. Absent for the system's manager. */
export function systemdBy(systemctl: readonly string[] | undefined): Systemd {
  const words = systemctl ?? [find('systemctl') ?? '/usr/bin/systemctl']
  return { words, isUsers: systemctl !== undefined }
}

/** Returns null if systemd runs, tested as in sd_booted(3), and otherwise what is missing. */
export async function missingSystemd({ words, isUsers }: Systemd): Promise<string | null> {
  if (isUsers) return null
  const isThere = await stat('/run/systemd/system').then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!isThere) return 'systemd does not run on this device'
  return find('systemctl') === null ? `${words[0]} is not installed` : null
}

const asked = {
  unit: 'Id',
  description: 'Description',
  load: 'LoadState',
  active: 'ActiveState',
  sub: 'SubState',
  type: 'Type',
  result: 'Result',
  exit_status: 'ExecMainStatus',
  main_pid: 'MainPID',
  restarts: 'NRestarts',
  invocation: 'InvocationID',
  since: 'StateChangeTimestamp',
  file: 'FragmentPath',
  enabled: 'UnitFileState',
  is_changed_on_disk: 'NeedDaemonReload',
  memory_bytes: 'MemoryCurrent',
  tasks: 'TasksCurrent',
  started_by: 'TriggeredBy',
  required_by: 'RequiredBy',
  bound_by: 'BoundBy',
  parts: 'ConsistsOf',
  stops_too: 'PropagatesStopTo',
} as const

export type UnitState = Record<keyof typeof asked, string>

/** The environment that makes systemd's output plain: no colours, English, UTC. */
const environment = { LC_ALL: 'C', TZ: 'UTC', SYSTEMD_COLORS: '0', SYSTEMD_PAGER: '' }

/**
 * Returns what systemd reports about units, in order; `null` for an unknown name. Runs outside of
 * the sandbox: code chooses the arguments, and a user namespace would hide the caller.
 */
export async function showUnits(
  { words }: Systemd,
  units: readonly string[],
  { run }: Pick<CapabilityContext, 'run'>,
): Promise<(UnitState | null)[]> {
  if (units.length === 0) return []
  const argv = [...words, 'show', '--no-pager', `--property=${Object.values(asked).join(',')}`, '--', ...units]
  const ran = await run(argv, { confine: 'write', env: environment })
  requireDone('systemctl show', ran)
  return ran.stdout.split(/\n\n+/).map((block) => {
    const fields = new Map(block.split('\n').map((line) => splitOnce(line)))
    const state = Object.fromEntries(
      Object.entries(asked).map(([name, property]) => [
        name,
        clean(fields.get(property) ?? '', lists.has(name) ? maxOfList : undefined),
      ]),
    ) as UnitState
    return state.load === 'not-found' || state.unit === '' ? null : state
  })
}

const splitOnce = (line: string): [string, string] => {
  const at = line.indexOf('=')
  return [line.slice(0, at), line.slice(at + 1)]
}

/** Cuts texts but no lists of units: a unit that a list lacks would stop unnoticed. */
const clean = (text: string, max = 2_000) => stripText(text, { keepNewlines: false }).slice(0, max)
const lists = new Set(['required_by', 'bound_by', 'parts', 'stops_too'])
const maxOfList = 200_000

/**
 * The right to control a service. `own`: the manager is the agent's user's. `root`: the agent is
 * root. `sudo`: sudoers allows exactly this command. `unknown`: polkit decides at the attempt.
 */
export type Privilege = 'own' | 'root' | 'sudo' | 'unknown'

const sudo = '/usr/bin/sudo'

/**
 * Finds out whether the agent may run a verb for a unit, without running it: `sudo -l` with the
 * command line exits with 0 if sudoers allows it.
 */
export async function privilegeOf(
  systemd: Systemd,
  verb: string,
  unit: string,
  { run }: Pick<CapabilityContext, 'run'>,
): Promise<Privilege> {
  if (systemd.isUsers) return 'own'
  if (isRoot()) return 'root'
  if (find('sudo') === null) return 'unknown'
  const ran = await run([sudo, '-n', '-l', '--', ...systemd.words, verb, unit], { confine: 'root' })
  return ran.exitCode === 0 ? 'sudo' : 'unknown'
}

/** Runs a verb and waits for systemd's job. Throws systemd's message if the job fails. */
export async function controlUnit(
  systemd: Systemd,
  verb: string,
  unit: string,
  context: Pick<CapabilityContext, 'run' | 'emit'>,
): Promise<void> {
  const privilege = await privilegeOf(systemd, verb, unit, context)
  const words = [...systemd.words, verb, unit]
  const options = { env: environment, onLine: context.emit }
  const ran =
    privilege === 'sudo'
      ? await context.run([sudo, '-n', '--', ...words], { confine: 'root', onLine: context.emit })
      : await context.run([...systemd.words, '--no-ask-password', verb, unit], { confine: 'write', ...options })
  requireDone(`systemctl ${verb}`, ran)
}

function requireDone(what: string, ran: RunResult): void {
  const why = whyNotDone(what, ran)
  if (why && !why.ok) throw new CapabilityError(why.code, clean(why.message))
}
