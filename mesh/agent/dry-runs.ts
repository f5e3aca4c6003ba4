import { argvVerdict } from './guard.ts'

/**
 * Reads and dry runs before a command that writes, as data: one row per program. A row `shows` its
 * target, or `lists` exactly what the command would change; it runs only if the judge proves that
 * it only reads. A row that `tries` runs only with the options and operands that it names, because
 * another option could undo its dry-run switch, which the judge does not know. Commands that run a
 * user's program or use the network are excluded even with a dry-run switch: `make -n` runs lines
 * with a plus, `ansible --check` and `terraform plan` start modules and providers, `git push
 * --dry-run` contacts the remote and starts hooks, `helm --dry-run` and `kubectl --dry-run=server`
 * contact the cluster, `patch --dry-run` writes backup files.
 */
type DryRun = {
  kind: 'shows' | 'lists' | 'tries'
  /**
   * Returns the command line of the dry run. Null if a command with these arguments has no dry run.
   */
  argv(words: readonly string[]): string[] | null
  /**
   * Returns the part of an output line on which the approval depends. Default: the complete line.
   */
  rests?(line: string): string | null
}

type Split = { options: string[]; operands: string[] }

/**
 * Splits words into options and operands. An option's value is joined to the option. Null if an
 * option is not allowed.
 */
function split(words: readonly string[], allowed: RegExp): Split | null {
  const at = words.indexOf('--')
  const before = at < 0 ? words : words.slice(0, at)
  const options = before.filter((word) => /^-./.test(word))
  if (!options.every((word) => allowed.test(word))) return null
  const operands = [...before.filter((word) => !/^-./.test(word)), ...(at < 0 ? [] : words.slice(at + 1))]
  return { options, operands }
}

const nothing = /^$/
const unitFields =
  'Id,LoadState,ActiveState,SubState,UnitFileState,MainPID,ActiveEnterTimestamp,FragmentPath,RequiredBy,BoundBy,ConsistsOf'

const showUnits = (units: readonly string[]): string[] | null =>
  units.length === 0 ? null : ['systemctl', 'show', '--no-pager', `--property=${unitFields}`, '--', ...units]

/**
 * Treats a unit that crashes and restarts as running. Otherwise each crash would need a new
 * approval of the command that is meant to end the crashes.
 */
function unitRests(line: string): string | null {
  const [, field, value = ''] = /^(\w+)=(.*)$/.exec(line) ?? []
  if (field === undefined || field === 'MainPID' || field === 'SubState' || field === 'ActiveEnterTimestamp')
    return null
  if (field !== 'ActiveState') return line
  return `${field}=${/^(?:inactive|failed|deactivating)$/.test(value) ? 'down' : 'up'}`
}

const unitVerbs =
  /^(?:start|stop|restart|try-restart|reload|reload-or-restart|try-reload-or-restart|enable|disable|reenable|mask|unmask|kill|reset-failed|clean|revert)$/

const systemctl: DryRun = {
  kind: 'shows',
  argv(words) {
    const read = split(
      words.slice(1),
      /^(?:--now|--no-block|--quiet|-q|--no-pager|--system|--force|-f|--no-ask-password)$/,
    )
    const [verb = '', ...units] = read?.operands ?? []
    return unitVerbs.test(verb) ? showUnits(units) : null
  },
  rests: unitRests,
}

const service: DryRun = {
  kind: 'shows',
  argv: ([, name, verb, ...more]) =>
    name && verb && more.length === 0 && /^\w[\w.@-]*$/.test(name) ? showUnits([`${name}.service`]) : null,
  rests: unitRests,
}

const packages = /^[a-z0-9][a-z0-9.+-]*(?::[a-z0-9]+)?(?:=[\w.+:~-]+)?[+-]?$/
const aptVerbs = /^(?:install|reinstall|remove|purge|upgrade|dist-upgrade|full-upgrade|autoremove|autopurge)$/

const apt: DryRun = {
  kind: 'tries',
  argv(words) {
    const read = split(
      words.slice(1),
      /^(?:-y|--yes|--assume-yes|-q|-qq|--quiet|--no-install-recommends|--no-remove|--only-upgrade|--purge|--auto-remove|--autoremove|--reinstall|-f|--fix-broken|--allow-downgrades)$/,
    )
    const [verb = '', ...names] = read?.operands ?? []
    if (!read || !aptVerbs.test(verb) || !names.every((name) => packages.test(name))) return null
    return ['apt-get', '--simulate', ...read.options, verb, '--', ...names]
  },
  rests: (line) => (/^(?:Inst|Remv) /.test(line) ? line : null),
}

const dpkg: DryRun = {
  kind: 'tries',
  argv(words) {
    const read = split(words.slice(1), /^(?:-r|-P|--remove|--purge)$/)
    if (read?.options.length !== 1 || read.operands.length === 0) return null
    return read.operands.every((name) => packages.test(name))
      ? ['dpkg', '--no-act', ...read.options, '--', ...read.operands]
      : null
  },
}

/** Whether a path is on this machine. A colon before the first slash names another host. */
const isLocal = (path: string): boolean => !/^[^/]*:/.test(path)

const rsync: DryRun = {
  kind: 'tries',
  argv(words) {
    const read = split(
      words.slice(1),
      /^(?:-[avrlptgoDzhuxHAXciqSW]+|--(?:archive|verbose|recursive|links|perms|times|group|owner|compress|update|checksum|one-file-system|hard-links|acls|xattrs|delete|delete-(?:before|during|delay|after|excluded)|existing|ignore-existing|size-only|numeric-ids|sparse|inplace|whole-file|remove-source-files|exclude=[^-]\S*|include=[^-]\S*|bwlimit=\w+|max-delete=\d+))$/,
    )
    if (!read || read.operands.length < 2 || !read.operands.every(isLocal)) return null
    return ['rsync', '--dry-run', '--itemize-changes', ...read.options, '--', ...read.operands]
  },
}

const find: DryRun = {
  kind: 'lists',
  argv: (words) =>
    words.at(-1) === '-delete' && words.filter((word) => word === '-delete').length === 1
      ? [...words.slice(0, -1), '-print']
      : null,
}

const pkill: DryRun = {
  kind: 'lists',
  argv(words) {
    const rest = words.slice(1).filter((word) => !/^-(?:[A-Z][A-Z0-9]*|\d+)$|^--signal=\w+$/.test(word))
    return rest.length === 0 ? null : ['pgrep', '-a', ...rest]
  },
  rests: (line) => line.split(' ')[0] ?? null,
}

const killall: DryRun = {
  kind: 'lists',
  argv(words) {
    const read = split(words.slice(1), /^-(?:[A-Z][A-Z0-9]*|\d+|w|q)$/)
    return read?.operands.length === 1 ? ['pgrep', '-a', '-x', '--', read.operands[0]!] : null
  },
  rests: (line) => line.split(' ')[0] ?? null,
}

const containers = (engine: string): DryRun => ({
  kind: 'shows',
  argv(words) {
    const read = split(words.slice(1), /^(?:-f|--force|-v|--volumes)$/)
    const operands = read?.operands[0] === 'container' ? read.operands.slice(1) : (read?.operands ?? [])
    const [verb = '', ...names] = operands
    const isPlain = names.length > 0 && names.every((name) => /^[A-Za-z0-9][\w.-]*$/.test(name))
    if (!/^(?:start|stop|restart|kill|rm|pause|unpause)$/.test(verb) || !isPlain) return null
    const filters = names.flatMap((name) => ['--filter', `name=^${name.replaceAll('.', '\\.')}$`])
    return [engine, 'ps', '--all', ...filters, '--format', '{{.ID}} {{.Names}} {{.Image}} {{.State}}']
  },
})

const sysctl: DryRun = {
  kind: 'shows',
  argv(words) {
    const read = split(words.slice(1), /^(?:-w|--write|-q)$/)
    const names = read?.operands.map((each) => each.split('=')[0]!) ?? []
    return names.length > 0 ? ['sysctl', ...names] : null
  },
}

const umount: DryRun = {
  kind: 'shows',
  argv(words) {
    const read = split(words.slice(1), /^(?:-l|-f|--lazy|--force)$/)
    return read?.operands.length === 1 ? ['findmnt', '--', read.operands[0]!] : null
  },
}

const account: DryRun = {
  kind: 'shows',
  argv(words) {
    const name = words.at(-1) ?? ''
    return words.length > 1 && /^[a-z_][\w-]*$/.test(name) ? ['id', '--', name] : null
  },
}

const guest = (program: string): DryRun => ({
  kind: 'shows',
  argv: ([, verb = '', number = '', ...more]) =>
    /^(?:start|stop|shutdown|reboot|reset|suspend|resume|destroy)$/.test(verb) && more.length === 0
      ? [program, 'status', number]
      : null,
})

const tar: DryRun = {
  kind: 'shows',
  argv(words) {
    const [, mode = '', file = '', ...rest] = words
    const isPlain = /^-?(?:x[vzjJp]*f|xf)$/.test(mode) && (rest.length === 0 || (rest.length === 2 && rest[0] === '-C'))
    return isPlain ? ['tar', '--list', `--file=${file}`] : null
  },
}

const kubectl: DryRun = {
  kind: 'shows',
  argv(words) {
    const read = split(words.slice(1), /^--namespace=[a-z0-9-]+$/)
    const [verb, ...things] = read?.operands ?? []
    return read && verb === 'delete' && things.length > 0 ? ['kubectl', 'get', ...read.options, '--', ...things] : null
  },
  // Keeps only the name, because the age changes with every read.
  rests: (line) => line.split(/\s+/)[0] ?? null,
}

const logrotate: DryRun = {
  kind: 'shows',
  argv(words) {
    const read = split(words.slice(1), nothing)
    return read?.operands.length === 1 ? ['logrotate', '-d', read.operands[0]!] : null
  },
}

export const dryRuns: ReadonlyMap<string, DryRun> = new Map<string, DryRun>([
  ['systemctl', systemctl],
  ['service', service],
  ['apt-get', apt],
  ['apt', apt],
  ['dpkg', dpkg],
  ['rsync', rsync],
  ['find', find],
  ['pkill', pkill],
  ['killall', killall],
  ['docker', containers('docker')],
  ['podman', containers('podman')],
  ['sysctl', sysctl],
  ['umount', umount],
  ['userdel', account],
  ['deluser', account],
  ['usermod', account],
  ['qm', guest('qm')],
  ['pct', guest('pct')],
  ['tar', tar],
  ['kubectl', kubectl],
  ['logrotate', logrotate],
])

/**
 * Finds the read or dry run that shows the effect of a command before the command runs. Null if the
 * program has none, or if the judge does not prove that the read only reads.
 */
export function dryRunOf(
  name: string,
  words: readonly string[],
  cwd: string,
  hidden: readonly string[],
): { row: DryRun; argv: string[] } | null {
  const row = dryRuns.get(name)
  const argv = row?.argv(words)
  if (!row || !argv) return null
  if (row.kind !== 'tries' && argvVerdict(argv, cwd, { secrets: hidden }).verdict !== 'run') return null
  return { row, argv }
}
