import type { Grammars } from './grammar.ts'

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
