import type { Grammars } from './grammar.ts'
import type { Word } from './parse.ts'

export type Inner = ArgvInner | ScriptInner
type ArgvInner = { kind: 'argv'; words: Word[]; before: Word[]; after: Word[] }
type ScriptInner = { kind: 'script'; text: string; before: Word[]; after: Word[] }

export type Unwrapped = {
  inner: Inner[]
  /** The inside is all that runs, with the operands it is given. */
  judged: boolean
  /** Words of the inner command with more or fewer operands than one: it runs with these too. */
  others: Word[][]
  /** Commands that may be inside, since an option is not known: for the hard list only. */
  candidates: Word[][]
  /** Why a read inside is not one any more; null when it stays one. */
  askReason: { word: Word | null; text: string } | null
  /** Names of hosts and of containers that the wrapper reaches. */
  hosts: Word[]
  names: Word[]
  /** What goes by these names, and the namespace that options lead to. */
  within: { kind: string; namespace: string }
  root: boolean
  assignments: { name: string; value: string }[]
  /** Ends what is inside after a while. */
  bounds: boolean
  /** Positions of words that ask for a terminal, and whether it repeats for ever. */
  tty: number[]
  endless: boolean
  /** A shell that waits for somebody to type. */
  interactive: boolean
  /** The inside was its input: nothing of that is left for what runs there. */
  readsInput: boolean
  /** Directories of this machine under their names inside a container. */
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

/** Programs that run what they read from their input. */
export const inputRunners: ReadonlySet<string> = new Set([...shells, 'at', 'batch', 'source', '.'])

/** What the shell itself does and only looks. */
export const shell: Grammars = {
  cd: { manual: 'cd, bash(1)', options: { '-L': 'flag', '-P': 'flag' }, operands: { first: ['file'] } },
  command: {
    manual: 'command, bash(1)',
    options: { '-v': 'flag', '-V': 'flag' },
    operands: { first: ['name'], min: 1 },
    requires: ['-v', '-V'],
  },
}

/** A word as bash reads it back: bare where nothing in it is special, else in single quotes. */
export function quote(text: string): string {
  return /^(?:~$|~(?=\/)|[\w@%+:,./-])[\w@%+=:,./-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
