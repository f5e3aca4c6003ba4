import type { CommandField } from '../../domain/tool.ts'
import { parse, type Word } from './parse.ts'
import { unwrap } from './unwrap.ts'
import { shells } from './unwrapped.ts'

/** Programs that end with the exit code of the one command they run. */
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
/** Deeper than anybody wraps a command. */
const deepest = 8

/**
 * Has a command that ended with this exit code done what it was asked to do? 0 always says so, and what else does is data of its grammar.
 * Of a text with more than one command only 0: its exit code tells of the last one alone. Pure and total.
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
  // Of a pipe it is the last command's.
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
 * Exit codes other than 0 with which a program has done what it was asked to do, from its manual. Everything else that is not 0 says that
 * it failed. `commands`: codes of a sub-command, instead of those of the program.
 */
export type ExitCodes = {
  manual: string
  codes: readonly number[]
  commands?: Readonly<Record<string, readonly number[]>>
}

const noMatch = (manual: string): ExitCodes => ({ manual, codes: [1] })

export const exitCodes: Readonly<Record<string, ExitCodes>> = {
  // 1: no line was selected; 2 is an error.
  grep: noMatch('grep(1), GNU grep 3.8'),
  egrep: noMatch('grep(1), GNU grep 3.8'),
  fgrep: noMatch('grep(1), GNU grep 3.8'),
  zgrep: noMatch('zgrep(1), gzip 1.12'),
  rg: noMatch('rg(1), ripgrep 13'),
  pgrep: noMatch('pgrep(1), procps-ng 4.0'),
  pidof: noMatch('pidof(8), sysvinit-utils 3.06'),
  // 1: the inputs differ; 2 is trouble.
  diff: { manual: 'diff(1), diffutils 3.8', codes: [1] },
  cmp: { manual: 'cmp(1), diffutils 3.8', codes: [1] },
  git: { manual: 'git-diff(1): --exit-code', codes: [], commands: { diff: [1] } },
  // 1: the expression is false.
  test: { manual: 'test(1), coreutils 9.1', codes: [1] },
  '[': { manual: 'test(1), coreutils 9.1', codes: [1] },
  // Codes of the LSB: 3 is "not running"; of is-enabled and is-failed 1 is "no".
  systemctl: {
    manual: 'systemctl(1), systemd 252',
    codes: [],
    commands: { 'is-active': [3], status: [3], 'is-enabled': [1], 'is-failed': [1] },
  },
  // 24: files vanished at the source while it ran; the rest was transferred.
  rsync: { manual: 'rsync(1), 3.2', codes: [24] },
  // 1: errors were found and corrected.
  fsck: { manual: 'fsck(8), util-linux 2.38', codes: [1] },
  e2fsck: { manual: 'e2fsck(8), e2fsprogs 1.47', codes: [1] },
  'fsck.ext4': { manual: 'e2fsck(8), e2fsprogs 1.47', codes: [1] },
  // 100: there are updates.
  dnf: { manual: 'dnf(8), 4.14', codes: [], commands: { 'check-update': [100] } },
  yum: { manual: 'yum(8), 4.14', codes: [], commands: { 'check-update': [100] } },
}
