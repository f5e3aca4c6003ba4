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
