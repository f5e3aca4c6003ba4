import type { CommandField } from '../../domain/tool.ts'
import { exitCodes } from './grammars/exit-codes.ts'
import { parse, type Word } from './parse.ts'
import { shells } from './shells.ts'
import { unwrap } from './unwrap.ts'

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
