import type { CommandField } from '../../domain/tool.ts'
import { parse, type Word } from './parse.ts'
import { asks, empty, inputRunners, script, shells, type Unwrapped } from './unwrapped.ts'
import { compile, table, unwrapByTable } from './wrapper.ts'
import { type InputKind, unwrapFind, unwrapXargs, withArguments } from './xargs.ts'

/** Finds the commands that a command runs. */

/**
 * Finds the commands that a command runs; null if it is not a wrapper. `input`: its input, if
 * known.
 */
export function unwrap(
  name: string,
  words: readonly Word[],
  input: string | null,
  piped: boolean,
  fed: InputKind = null,
): Unwrapped | null {
  if (shells.has(name) && !onlyTells(words)) return unwrapShell(words, input, piped)
  const content = inputRunners.has(name) ? words[1]?.content : undefined
  if (content !== undefined) return { ...empty(), inner: [script(content)], askReason: asks(null, 'runs a script') }
  if (inputRunners.has(name))
    return input === null
      ? null
      : { ...empty(), inner: [script(input)], readsInput: true, askReason: asks(null, 'runs its input') }
  const special = specials.get(name)
  if (special) return special(words, input, fed)
  // Skips command lines that only print something. Reads runuser without `-u` as `su`; with `-u`,
  // runuser takes a command after its options.
  if ((name === 'numactl' || name === 'ansible' || shells.has(name)) && onlyTells(words)) return null
  const isSu = name === 'runuser' && !words.some(({ text }) => /^(?:-u|--user)/.test(text))
  const wrapper = table.get(isSu ? 'su' : name)
  return wrapper ? unwrapByTable(words, wrapper) : null
}

const onlyTells = (words: readonly Word[]): boolean =>
  words.length === 2 &&
  /^(?:--version|--hardware|--show|-H|-s)$/.test(words[1]!.text) &&
  (words[0]!.text === 'numactl' || words[1]!.text === '--version')

function unwrapShell(words: readonly Word[], input: string | null, piped: boolean): Unwrapped {
  const result = empty()
  let at = 1
  let fromOption = false
  for (; at < words.length; at += 1) {
    const text = words[at]!.text
    if (text === '--') {
      at += 1
      break
    }
    if (!/^[-+]./.test(text)) break
    if (/^-[a-zA-Z]*c[a-zA-Z]*$/.test(text)) fromOption = true
    if (!/^-[ceux]+$/.test(text)) result.askReason ??= asks(words[at]!, 'changes how the script runs')
    if (/^[-+][a-zA-Z]*[oO]$/.test(text) || text === '--rcfile' || text === '--init-file') at += 1
  }
  const operand = words[at]
  // Needs approval for these shells, because they read a user's file before any script, and parse
  // differently from bash.
  if (/(?:^|\/)(?:zsh|fish|t?csh)$/.test(words[0]!.text))
    result.askReason ??= asks(words[0]!, 'is not known to parse scripts like bash')
  if (fromOption && operand) {
    if (words.length > at + 1) result.askReason ??= asks(words[at + 1]!, 'is an argument of the script')
    result.inner.push(script(operand.text, words.slice(0, at), words.slice(at + 1)))
    return result
  }
  if (operand?.content !== undefined) result.inner.push(script(operand.content))
  result.askReason = asks(operand ?? words[0]!, operand ? 'is a script of unknown content' : 'runs what it reads')
  if (input !== null) {
    result.inner.push(script(input))
    result.readsInput = true
  } else result.interactive = !operand && !piped
  return result
}

type Special = (words: readonly Word[], input: string | null, fed: InputKind) => Unwrapped | null

const specials: ReadonlyMap<string, Special> = new Map<string, Special>([
  ['find', unwrapFind],
  ['xargs', unwrapXargs],
  ['parallel', unwrapParallel],
  [
    'trap',
    (words) =>
      words[1]
        ? { ...empty(), inner: [script(words[1].text)], askReason: asks(words[0]!, 'runs a command later') }
        : null,
  ],
  [
    'alias',
    (words) => ({
      ...empty(),
      inner: words.slice(1).map((word) => script(word.text.slice(word.text.indexOf('=') + 1))),
      askReason: asks(words[0]!, 'gives a command another name'),
    }),
  ],
  [
    'command',
    (words) => (/^-[pvV]*[vV]/.test(words[1]?.text ?? '') ? null : unwrapByTable(words, table.get('command')!)),
  ],
])

const parallelTable = compile({
  flags: `-k -q -X -m -t -u -0 -v --keep-order --quote --eta --bar --progress --dry-run --verbose --ungroup --line-buffer --tag --null
    --nonall --onall --pipe --xargs --will-cite --no-notice --group`,
  values: `-j -P -S -a -I -n -N -L -d -C --jobs --sshlogin --slf --sshloginfile --arg-file --max-args --delimiter --colsep --delay
    --timeout --retries --joblog --results --workdir --wd --tmpdir --halt --load --memfree --env --block --max-procs --basefile`,
  rest: 'argv',
})

function unwrapParallel(words: readonly Word[], input: string | null): Unwrapped | null {
  const colon = words.findIndex((word) => /^:::/.test(word.text))
  const head = colon < 0 ? words : words.slice(0, colon)
  const sources: string[][] = []
  for (const word of colon < 0 ? [] : words.slice(colon)) {
    if (/^:::/.test(word.text)) sources.push([])
    else sources.at(-1)!.push(word.text)
  }
  if (colon < 0 && input !== null) sources.push(input.split('\n').filter((line) => line !== ''))
  const result = unwrapByTable(head, parallelTable)!
  result.askReason ??= asks(words[0]!, 'takes operands from its input')
  // Reads a bare argument as a command, because parallel gives each line to a shell.
  if (result.inner.every((inner) => inner.kind === 'argv')) {
    result.inner = [...result.inner, ...sources.flat().map((argument) => script(argument))]
  }
  return withArguments(result, sources, words)
}

/** Programs that end with the exit code of the one command that they run. */
const passing = new Set([
  'sudo',
  'doas',
  'su',
  'runuser',
  'gosu',
  'pkexec',
  'env',
  'nice',
  'ionice',
  'chrt',
  'taskset',
  'numactl',
  'stdbuf',
  'nohup',
  'timeout',
  'time',
  'exec',
  'command',
  'builtin',
  'busybox',
  'toybox',
  'chroot',
  'setpriv',
  'nsenter',
  'docker',
  'podman',
  'pct',
  'lxc-attach',
  'kubectl',
  'ssh',
  ...shells,
])
/** Most nested layers through which an exit code is followed. */
const deepest = 8

/**
 * Whether a command succeeded, by its exit code. 0 always means success; other codes are data of
 * the program. For a text of several commands only 0 means success, because its exit code is that
 * of the last one. Pure and total.
 */
export function isGoodExit(
  { field, form }: Pick<CommandField, 'field' | 'form'>,
  args: Readonly<Record<string, unknown>>,
  exitCode: number,
): boolean {
  if (exitCode === 0) return true
  const value = args[field]
  if (form === 'bash') return isGoodText(String(value), exitCode, 0)
  const words = (Array.isArray(value) ? value : []).map(
    (text): Word => ({ text: String(text), literal: true, quoting: 'bare', pattern: null }),
  )
  return isGoodCommand(words, exitCode, 0)
}

function isGoodText(text: string, exitCode: number, depth: number): boolean {
  const tree = parse(text)
  const [pipeline, another] = tree?.pipelines ?? []
  if (
    !tree ||
    tree.error ||
    another ||
    tree.nested.length > 0 ||
    tree.shapes.some(({ shape }) => shape === 'background')
  )
    return false
  // Uses the last command of a pipe, whose exit code the pipe has.
  const last = pipeline?.at(-1)
  return last !== undefined && isGoodCommand(last.words, exitCode, depth)
}

function isGoodCommand(words: readonly Word[], exitCode: number, depth: number): boolean {
  const first = words[0]
  if (!first || depth > deepest) return false
  const name = first.text.slice(first.text.lastIndexOf('/') + 1)
  const inner = passing.has(name) ? (unwrap(name, words, null, false)?.inner ?? []) : []
  if (inner.length === 1) {
    const [only] = inner
    return only!.kind === 'argv'
      ? isGoodCommand(only!.words, exitCode, depth + 1)
      : isGoodText(only!.text, exitCode, depth + 1)
  }
  if (!Object.hasOwn(exitCodes, name)) return false
  const { codes, commands = {} } = exitCodes[name]!
  const command = words.slice(1).find(({ text }) => !text.startsWith('-'))?.text ?? ''
  return (Object.hasOwn(commands, command) ? commands[command]! : codes).includes(exitCode)
}

/**
 * Exit codes other than 0 that mean success, from the program's manual. Any other code means
 * failure. `commands`: codes of a sub-command, in place of the program's.
 */
type ExitCodes = {
  manual: string
  codes: readonly number[]
  commands?: Readonly<Record<string, readonly number[]>>
}

const noMatch = (manual: string): ExitCodes => ({ manual, codes: [1] })

const exitCodes: Readonly<Record<string, ExitCodes>> = {
  // 1 means that no line was selected; 2 is an error.
  grep: noMatch('grep(1), GNU grep 3.8'),
  egrep: noMatch('grep(1), GNU grep 3.8'),
  fgrep: noMatch('grep(1), GNU grep 3.8'),
  zgrep: noMatch('zgrep(1), gzip 1.12'),
  rg: noMatch('rg(1), ripgrep 13'),
  pgrep: noMatch('pgrep(1), procps-ng 4.0'),
  pidof: noMatch('pidof(8), sysvinit-utils 3.06'),
  // 1 means that the inputs differ; 2 is an error.
  diff: { manual: 'diff(1), diffutils 3.8', codes: [1] },
  cmp: { manual: 'cmp(1), diffutils 3.8', codes: [1] },
  git: { manual: 'git-diff(1): --exit-code', codes: [], commands: { diff: [1] } },
  // 1 means that the expression is false.
  test: { manual: 'test(1), coreutils 9.1', codes: [1] },
  '[': { manual: 'test(1), coreutils 9.1', codes: [1] },
  // Codes of the LSB: 3 means "not running"; of is-enabled and is-failed, 1 means "no".
  systemctl: {
    manual: 'systemctl(1), systemd 252',
    codes: [],
    commands: { 'is-active': [3], status: [3], 'is-enabled': [1], 'is-failed': [1] },
  },
  // 24 means that files vanished meanwhile; all other files were transferred.
  rsync: { manual: 'rsync(1), 3.2', codes: [24] },
  // 1 means that errors were found and corrected.
  fsck: { manual: 'fsck(8), util-linux 2.38', codes: [1] },
  e2fsck: { manual: 'e2fsck(8), e2fsprogs 1.47', codes: [1] },
  'fsck.ext4': { manual: 'e2fsck(8), e2fsprogs 1.47', codes: [1] },
  // 100 means that there are updates.
  dnf: { manual: 'dnf(8), 4.14', codes: [], commands: { 'check-update': [100] } },
  yum: { manual: 'yum(8), 4.14', codes: [], commands: { 'check-update': [100] } },
}
