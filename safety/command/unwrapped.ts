import type { Grammars } from './grammar.ts'
import type { Word } from './parse.ts'

export type Inner = ArgvInner | ScriptInner
type ArgvInner = { kind: 'argv'; words: Word[]; before: Word[]; after: Word[] }
type ScriptInner = { kind: 'script'; text: string; before: Word[]; after: Word[] }

export type Unwrapped = {
  inner: Inner[]
  /** Whether it is enough to judge the inner command with the given operands. */
  judged: boolean
  /**
   * Words of the inner command with several operands or none: the command may run with these words
   * too.
   */
  others: Word[][]
  /**
   * Possible inner commands if an option is unknown. Used only for the list of forbidden commands.
   */
  candidates: Word[][]
  /** The reason why an inner read is no longer a read; null if it stays one. */
  askReason: { word: Word | null; text: string } | null
  /** Hosts and containers that the wrapper reaches. */
  hosts: Word[]
  names: Word[]
  /** The kind of the names in `hosts`, and the namespace that options choose. */
  within: { kind: string; namespace: string }
  root: boolean
  assignments: { name: string; value: string }[]
  /** Whether the wrapper ends the inner command after a time. */
  bounds: boolean
  /**
   * Positions of arguments that request a terminal. `endless`: whether the wrapper repeats the
   * command for ever.
   */
  tty: number[]
  endless: boolean
  /** Whether the command is a shell that waits for typed input. */
  interactive: boolean
  /** Whether the inner command was the input of the outer command, of which nothing is left. */
  readsInput: boolean
  /** Directories of this machine with their paths inside a container. */
  mounts: { inside: string; outside: string }[]
}

export const empty = (): Unwrapped => ({
  inner: [],
  others: [],
  candidates: [],
  judged: false,
  askReason: null,
  hosts: [],
  names: [],
  within: { kind: '', namespace: '' },
  root: false,
  assignments: [],
  bounds: false,
  tty: [],
  endless: false,
  interactive: false,
  readsInput: false,
  mounts: [],
})

export const script = (text: string, before: Word[] = [], after: Word[] = []): ScriptInner => ({
  kind: 'script',
  text,
  before,
  after,
})
export const argv = (words: Word[], before: Word[] = []): ArgvInner => ({ kind: 'argv', words, before, after: [] })
export const asks = (word: Word | null, text: string) => ({ word, text })

/** Shells: `-c` gives them a script; without a file they read one from their input. */
export const shells: ReadonlySet<string> = new Set([
  'sh',
  'bash',
  'dash',
  'ash',
  'zsh',
  'ksh',
  'mksh',
  'rbash',
  'fish',
  'csh',
  'tcsh',
])

/** Programs that run their input as commands. */
export const inputRunners: ReadonlySet<string> = new Set([...shells, 'at', 'batch', 'source', '.'])

/** Builtins of the shell that only read. */
export const shell: Grammars = {
  cd: { manual: 'cd, bash(1)', options: { '-L': 'flag', '-P': 'flag' }, operands: { first: ['file'] } },
  command: {
    manual: 'command, bash(1)',
    options: { '-v': 'flag', '-V': 'flag' },
    operands: { first: ['name'], min: 1 },
    requires: ['-v', '-V'],
  },
}

/** Quotes a word for bash: unquoted if nothing in it is special, otherwise in single quotes. */
export function quote(text: string): string {
  return /^(?:~$|~(?=\/)|[\w@%+:,./-])[\w@%+=:,./-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
