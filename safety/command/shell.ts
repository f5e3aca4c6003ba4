import type { Grammars } from './grammar.ts'

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
